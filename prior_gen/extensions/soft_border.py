"""A soft border: classes overlap, because the columns do not hold all that the class depends on.

The paper cuts the SCM's score itself. Here normal noise is added to the score before the cut, so
that rows near the border fall on either side, as if the class were drawn with a probability that
rises with the score. The amount of noise is relative to the score's interquartile range, which is
robust to heavy tails.
"""

import numpy as np

from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig

# The interquartile range of a normal variable of standard deviation 1.
_NORMAL_RANGE = 1.349


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The noise's standard deviation, in those of a normally distributed score; log-uniform."""
    return {"softness": round(log_uniform(rng, config.softness), 4)}


def soften(rng: np.random.Generator, parameters: dict, score: np.ndarray) -> np.ndarray:
    """The score [n] with added noise, in the same dtype.

    The noise's standard deviation is `softness` times the spread of the score: its interquartile
    range divided by 1.349. If that range is 0, the spread is taken as 1, to which the SCM's score
    is scaled.
    """
    ranked = np.sort(score)
    middle_half = float(ranked[3 * len(ranked) // 4] - ranked[len(ranked) // 4])
    spread = middle_half / _NORMAL_RANGE if middle_half > 0 else 1.0
    noise = rng.standard_normal(len(score), dtype=np.float32)
    return (score + np.float32(parameters["softness"] * spread) * noise).astype(score.dtype)
