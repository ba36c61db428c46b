"""The share of positives among the unlabelled rows: estimate, interval, and a user's own."""

from typing import Any

import numpy as np
from scipy.special import expit, logit

_EDGE = 1e-6


def shift_to(log_odds: np.ndarray, class_prior: float) -> float:
    """What to add to `log_odds` [n] so that the mean probability is `class_prior`, in (0, 1).

    A change of the class prior alone multiplies all odds by one number; this finds it.
    """
    low, high = -80.0 - log_odds.max(), 80.0 - log_odds.min()
    for _ in range(100):
        middle = (low + high) / 2
        if expit(log_odds + middle).mean() < class_prior:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def correct(raw: float, n_unlabeled: int, card: dict[str, Any]) -> tuple[float, float, float]:
    """Class prior and the ends of its interval, from the mean probability `raw`.

    With `class_prior_calibration` in the weights' card (`benchmarks/calibrate_class_prior.py`
    writes it, from synthetic tasks): on the log-odds scale, `intercept + slope * logit(raw)`, give
    or take the half width that covered `coverage` of the synthetic tasks with about as many
    unlabelled rows. Without it: `raw`, and NaN for the ends.
    """
    known = card.get("class_prior_calibration")
    if known is None:
        return raw, np.nan, np.nan
    middle = known["intercept"] + known["slope"] * logit(np.clip(raw, _EDGE, 1 - _EDGE))
    half = np.interp(np.log(n_unlabeled), np.log(known["n_unlabeled"]), known["half_width"])
    return tuple(float(expit(value)) for value in (middle, middle - half, middle + half))
