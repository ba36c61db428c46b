"""Independent columns: a designed table, such as a full grid of attribute values.

MONK's and Car list combinations of attributes, so that no column tells anything about another and
all structure is in the label. The label must therefore be made from the columns: by a tree or rule.
"""

import numpy as np

from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The distribution of all columns."""
    return {"distribution": ("uniform", "gaussian")[int(rng.integers(2))]}


def independent_columns(rng: np.random.Generator, parameters: dict, n: int, d: int) -> np.ndarray:
    """Draw independent cells [n, d], float32."""
    if parameters["distribution"] == "uniform":
        return rng.random((n, d), dtype=np.float32)
    return rng.standard_normal((n, d), dtype=np.float32)
