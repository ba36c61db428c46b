"""Grouped rows: several mails of one template, samples of one pane of glass, visits of one patient.

The rows of a real table are seldom independent. Rows of one group resemble one another in every
column. If they also share a class, they have something in common that no column holds: a row's
labelled neighbours then tell more about its class than its columns do.
"""

import numpy as np

from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig

_ALONE = (0.0, 0.6)
_SAME = (0.0, 0.7)
_COLUMN = (0.3, 1.7)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Average size of a group, how close its rows are, and whether they share a class.

    `alone` is the probability that a row belongs to no group. `spreads` says for each column how
    much the rows of a group differ: from 0 for not at all to 1 for as much as any rows.
    """
    closeness = log_uniform(rng, config.group_closeness)
    same = rng.random(d) < rng.uniform(*_SAME)
    spreads = np.where(same, 0.0, np.minimum(closeness * rng.uniform(*_COLUMN, d), 1.0))
    return {
        "size": round(log_uniform(rng, config.group_size), 4),
        "alone": round(float(rng.uniform(*_ALONE)), 4),
        "closeness": round(closeness, 4),
        "spreads": [round(float(spread), 4) for spread in spreads],
        "one_class": bool(rng.random() < 0.5),
    }


def group_heads(rng: np.random.Generator, parameters: dict, n: int) -> np.ndarray:
    """Index of the first row of each row's group, int [n]; a row that is alone gets its own index.

    Group sizes are uneven: a row's group is drawn by the square of a uniform number, so that the
    first groups have the most rows.
    """
    groups = max(round(n / parameters["size"]), 1)
    own = np.floor(groups * rng.random(n) ** 2).astype(int)
    alone = rng.random(n) < parameters["alone"]
    own[alone] = groups + np.flatnonzero(alone)
    _, first, group = np.unique(own, return_index=True, return_inverse=True)
    return first[group]


def draw_together(
    parameters: dict, heads: np.ndarray, x: np.ndarray, score: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Move each row of x [n, d] and of the score [n] towards the first row of its group.

    heads: int [n], from `group_heads`. Of the distance, the share in `spreads` remains for each
    column, and `closeness` for the score. Returns new arrays.
    """
    spreads = np.array(parameters["spreads"], dtype=x.dtype)
    x = x[heads] + spreads * (x - x[heads])
    if score is not None:
        closeness = score.dtype.type(parameters["closeness"])
        score = score[heads] + closeness * (score - score[heads])
    return x, score
