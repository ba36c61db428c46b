"""Censored columns: amounts that are mostly zero, concentrations below the detection limit.

All cells beyond a limit are set to it: an atom at one end of a column that is otherwise continuous.
The score depends on the uncensored cells, so the table lacks information that the classes have.
"""

import numpy as np

from prior_gen.extensions.drawn import Parameters
from puicl_config import ExtensionsConfig

_AT_THE_TOP = 0.2  # share of columns with a ceiling: floors are more common


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """For each column the share of cells at its limit: 0 for no limit, negative for a ceiling.

    Discrete columns get no limit, nor do proportional ones, where the common size would blur it.
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
    """x [n, d] with the cells beyond each column's limit set to the limit; not standardised."""
    x = x.copy()
    for column, share in enumerate(parameters["shares"]):
        at_limit = int(abs(share) * len(x))  # number of rows at the limit or beyond it
        if share > 0:
            x[:, column] = np.maximum(x[:, column], np.partition(x[:, column], at_limit)[at_limit])
        elif share < 0:
            place = len(x) - 1 - at_limit
            x[:, column] = np.minimum(x[:, column], np.partition(x[:, column], place)[place])
    return x
