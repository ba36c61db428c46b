"""Independent columns: a designed table, such as a full grid of attribute values.

MONK's and Car list combinations of attributes, so that no column says anything about another and
all the structure is in the label. It takes a label made from the columns: a tree or a rule.
"""

import numpy as np

from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Nothing but the distribution of every column."""
    return {"distribution": ("uniform", "gaussian")[int(rng.integers(2))]}


def independent_columns(rng: np.random.Generator, parameters: dict, n: int, d: int) -> np.ndarray:
    """[n, d] independent cells, float32."""
    if parameters["distribution"] == "uniform":
        return rng.random((n, d), dtype=np.float32)
    return rng.standard_normal((n, d), dtype=np.float32)
