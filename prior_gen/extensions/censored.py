"""Censored columns: amounts that are mostly nothing, concentrations below what can be measured.

All cells beyond a limit are at it: an atom at one end of a column that is continuous elsewhere.
What the score knew of the cells beyond is lost to whoever reads the column.
"""

import numpy as np

from prior_gen.extensions.drawn import Parameters
from puicl_config import ExtensionsConfig

_AT_THE_TOP = 0.2  # of the columns: floors are more common than ceilings


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """For each column the share of cells at its limit: 0 for none, negative for a ceiling.

    Discrete columns have no use for one, and a common size would blur it.
    """
    levels = drawn.get("discrete", {}).get("levels", [0] * d)
    sized = drawn.get("proportional", {}).get("columns", [])
    chosen = rng.random(d) < rng.uniform(0.2, 1.0)
    chosen[int(rng.integers(d))] = True
    signed = rng.uniform(*config.censored_share, d) * np.where(rng.random(d) < _AT_THE_TOP, -1, 1)
    shares = [
        round(float(share), 4) if chosen[column] and not levels[column] else 0.0
        for column, share in enumerate(signed)
    ]
    for column in sized:
        shares[column] = 0.0
    return {"shares": shares} if any(shares) else None


def censor_columns(parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """x [n, d] with the cells beyond each column's limit at it; not standardised."""
    x = x.copy()
    for column, share in enumerate(parameters["shares"]):
        at_limit = int(abs(share) * len(x))  # of n rows, so many are at the limit or beyond
        if share > 0:
            x[:, column] = np.maximum(x[:, column], np.partition(x[:, column], at_limit)[at_limit])
        elif share < 0:
            place = len(x) - 1 - at_limit
            x[:, column] = np.minimum(x[:, column], np.partition(x[:, column], place)[place])
    return x
