"""A soft border: classes that overlap, because the columns do not hold all that decides.

The paper cuts the SCM's score itself. Here normal noise is added to it before the cut, so that rows
near the border fall on either side, the nearer the more evenly, as they do where a class is drawn
with a probability that rises with the score. How much noise is measured by the score's middle half,
which heavy tails do not move.
"""

import numpy as np

from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig

# The interquartile range of a normal variable of standard deviation 1.
_NORMAL_RANGE = 1.349


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The noise's standard deviation in those of a normal score, log-uniform."""
    return {"softness": round(log_uniform(rng, config.softness), 4)}


def soften(rng: np.random.Generator, parameters: dict, score: np.ndarray) -> np.ndarray:
    """The score [n] with its noise; its dtype stays.

    The noise's standard deviation is `softness` times the score's spread: its interquartile range
    over 1.349 or, where half of the score is one value, 1 (what the SCM's score is scaled to).
    """
    ranked = np.sort(score)
    middle_half = float(ranked[3 * len(ranked) // 4] - ranked[len(ranked) // 4])
    spread = middle_half / _NORMAL_RANGE if middle_half > 0 else 1.0
    noise = rng.standard_normal(len(score), dtype=np.float32)
    return (score + np.float32(parameters["softness"] * spread) * noise).astype(score.dtype)
