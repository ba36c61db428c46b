"""Label noise: wrong diagnoses, overlapping classes.

Labels are flipped before the PU split: `y` and the labelled positives show the observed classes, so
the labelled rows are a fair sample of the observed positives. Equally many rows of each class are
flipped, so that pi holds.
"""

import numpy as np

from prior_gen.extensions.drawn import labeled_by_score
from puicl_config import ExtensionsConfig

_NEAR = 1 / 3  # share of each class that counts as near the border


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The share of the rarer class that is flipped, and where.

    Noise near the border needs a score; without one it is uniform.
    """
    share = round(float(rng.uniform(*config.noise_share)), 4)
    where = ("uniform", "border")[int(rng.integers(2))]
    return {"share": share, "where": where if labeled_by_score(drawn) else "uniform"}


def flipped_rows(
    rng: np.random.Generator, parameters: dict, negative: np.ndarray, score: np.ndarray | None
) -> np.ndarray:
    """Which rows of a pool change class: bool [n], as many positives as negatives.

    negative: bool [n]. score: [n], large for negatives; needed if noise is near the border.
    """
    flipped = np.zeros(len(negative), dtype=bool)
    sides = [np.flatnonzero(~negative), np.flatnonzero(negative)]
    count = round(parameters["share"] * min(len(side) for side in sides))
    for side, sign in zip(sides, (-1, 1), strict=True):
        if parameters["where"] == "border":
            assert score is not None, "a border is where a score says how far"
            near = max(count, round(_NEAR * len(side)))
            side = side[np.argsort(sign * score[side], kind="stable")[:near]]
        flipped[rng.permutation(side)[:count]] = True
    return flipped
