"""Nearly proportional columns: measures of bodies of all sizes, counts under unequal exposure.

The columns' common part (size, exposure) tells nothing about the class and outweighs what the
columns held before, which is left only in their differences.
"""

import numpy as np

from prior_gen.extensions.drawn import log_uniform, relevant_columns
from puicl_config import ExtensionsConfig

_LOADINGS = (0.5, 1.5)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """At least two continuous relevant columns, and the loading of each on the common size.

    Loadings are in standard deviations of the original column: a log-uniform number for all, times
    a random factor for each column.
    """
    levels = drawn.get("discrete", {}).get("levels", [0] * d)
    continuous = [column for column in relevant_columns(d, drawn).tolist() if not levels[column]]
    if len(continuous) < 2:
        return None
    count = int(rng.integers(2, len(continuous), endpoint=True))
    columns = sorted(rng.permutation(continuous)[:count].tolist())
    size = log_uniform(rng, config.proportional_size)
    loadings = [round(float(size * factor), 4) for factor in rng.uniform(*_LOADINGS, count)]
    return {"columns": columns, "loadings": loadings}


def share_size(rng: np.random.Generator, parameters: dict, x: np.ndarray) -> None:
    """Add one normal size per row to the chosen columns of x [n, d] (standardised), in place.

    The columns keep unit variance.
    """
    size = rng.standard_normal(len(x), dtype=np.float32)
    for column, loading in zip(parameters["columns"], parameters["loadings"], strict=True):
        x[:, column] = (x[:, column] + loading * size) / np.float32(np.sqrt(1 + loading**2))
