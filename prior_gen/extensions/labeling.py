"""Labelling that depends on the row (SAR): clear cases, for example, are diagnosed first.

The paper draws the labelled positives at random (SCAR). Here a positive is labelled with
probability proportional to exp(strength z). z is standardised among the positives, and is either
one of the features or minus the score, the distance from the negatives. Strength 0 is SCAR.
"""

import numpy as np

from prior_gen.extensions.drawn import labeled_by_score
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """What labelling depends on, and how strongly; a negative strength prefers low values."""
    by = ("score", "feature")[int(rng.integers(2))]
    strength = float(rng.uniform(*config.sar_strength)) * (1 if rng.random() < 0.5 else -1)
    by = by if labeled_by_score(drawn) else "feature"
    return {"by": by, "strength": round(strength, 4)}


def labeling_column(
    rng: np.random.Generator, parameters: dict, x: np.ndarray, score: np.ndarray | None
) -> tuple[np.ndarray, dict]:
    """The values [n] that labelling depends on, and the task's facts (column -1: the score)."""
    if parameters["by"] == "score":
        assert score is not None, "drawn where the classes are cut from one"
        return -score, {"column": -1}
    column = int(rng.integers(x.shape[1]))
    return x[:, column], {"column": column}


def labeled_first(rng: np.random.Generator, strength: float, values: np.ndarray) -> np.ndarray:
    """A random order of the positives, of which the first P are to be labelled.

    values: [positives]. Adding Gumbel noise to the log-propensities amounts to drawing without
    replacement in proportion to exp(strength z), with z clipped to +-4.
    """
    spread = float(values.std())
    z = (values - values.mean()) / spread if spread > 0 else np.zeros(len(values))
    return np.argsort(-(strength * np.clip(z, -4, 4) + rng.gumbel(size=len(values))))
