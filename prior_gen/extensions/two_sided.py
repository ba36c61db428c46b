"""Two-sided classes: healthy is what lies in the middle, and too much is as bad as too little.

The paper's classes are the two ends of a score. Here one class is the middle, the other both ends:
the score's distance from a quantile of its own takes the score's place.
"""

import numpy as np

from puicl_config import ExtensionsConfig

_CENTER = (0.3, 0.7)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The quantile that the middle lies around, and the class that it belongs to."""
    return {
        "center": round(float(rng.uniform(*_CENTER)), 4),
        "middle": ("positive", "negative")[int(rng.integers(2))],
    }


def two_sided(parameters: dict, score: np.ndarray) -> np.ndarray:
    """The score [n] that puts the middle at one end: large for negatives, as the SCM's is."""
    ranked = np.sort(score)
    distance = np.abs(score - ranked[int(parameters["center"] * len(ranked))])
    return distance if parameters["middle"] == "positive" else -distance
