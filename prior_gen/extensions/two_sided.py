"""Two-sided classes: healthy values lie in the middle, and too much is as bad as too little.

The paper's classes are the two ends of a score. Here one class is the middle and the other both
ends: the score is replaced by its distance from one of its quantiles.
"""

import numpy as np

from puicl_config import ExtensionsConfig

_CENTER = (0.3, 0.7)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The quantile at the centre of the middle, and the class of the middle."""
    return {
        "center": round(float(rng.uniform(*_CENTER)), 4),
        "middle": ("positive", "negative")[int(rng.integers(2))],
    }


def two_sided(parameters: dict, score: np.ndarray) -> np.ndarray:
    """A new score [n] with the middle at one end; like the SCM's, it is large for negatives."""
    ranked = np.sort(score)
    distance = np.abs(score - ranked[int(parameters["center"] * len(ranked))])
    return distance if parameters["middle"] == "positive" else -distance
