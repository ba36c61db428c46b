"""The class prior, the share of positives among the unlabelled rows: estimate and interval."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit

# Shares are clipped to [_EDGE, 1 - _EDGE] before taking log-odds.
_EDGE = 0.01

# An interval's end this close to the least or greatest share in training opens to 0 or 1.
_NEAR = 0.05

# Least slope of the estimate in the true share: a flatter line says nothing about the share.
_LEAST_SLOPE = 0.05

# A card's spread is the geometric mean of absolute errors; this is the ratio of a normal
# distribution's standard deviation to it. _SHARES: grid points in a given range of shares.
_NORMAL_TO_SPREAD, _SHARES = np.exp((np.euler_gamma + np.log(2)) / 2), 1000


def shift_to(log_odds: np.ndarray, class_prior: float) -> float:
    """Find the shift of `log_odds` [n] that makes the mean probability `class_prior`, in (0, 1).

    If only the class prior changes, all odds are multiplied by the same factor; the shift is its
    logarithm.
    """
    low, high = -80.0 - log_odds.max(), 80.0 - log_odds.min()
    for _ in range(100):
        middle = (low + high) / 2
        if expit(log_odds + middle).mean() < class_prior:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def estimate(
    log_odds: np.ndarray, n_labeled: int, card: dict[str, Any]
) -> tuple[float, float, float]:
    """Class prior and the ends of its interval, from the unlabelled rows' `log_odds` [n_u].

    The estimate is the mean probability. Where classes overlap, it hardly moves with the true share
    and stays near the shares of training, so an interval centred on it would cover a true share of
    .15 less often than one of .5. The interval is therefore an inverted test: its ends are the
    least and the greatest share at which the estimate would not be unusual.

    The distribution of estimates is in the weights' card, as `class_prior_interval`
    (`class_prior_fit`, by `benchmarks/calibrate_class_prior.py`). On the log-odds scale, the
    expected estimate is a line in the true share: flat if the probabilities resolve nothing, the
    true share itself if they resolve everything (`center`, `resolution`). The half-width is a
    spread predicted from `spread_evidence` (`spread`), times a factor that covered the share
    `coverage` of the tasks (`quantile`). Without this entry the ends are NaN.

    No training task had a share beyond `trained_shares`, and for tables beyond them the network
    still answers with shares that it has seen: an end close to a limit opens to 0 or 1.
    """
    share = float(expit(log_odds).mean())
    known = card.get("class_prior_interval") or {}
    if "center" not in known:
        return share, np.nan, np.nan
    intercept, slope = line_of(log_odds, known["center"])
    half = np.exp(spread_evidence(log_odds, n_labeled) @ known["spread"]) * known["quantile"]
    slope = max(slope, _LEAST_SLOPE)
    least, most = trained_shares(card)
    # With a nearly flat line, an estimate off the line does not indicate a share beyond training.
    middle = np.clip(
        (clipped_logit(share) - intercept) / slope, clipped_logit(least), clipped_logit(most)
    )
    low, high = float(expit(middle - half / slope)), float(expit(middle + half / slope))
    low = 0.0 if low < least + _NEAR else min(low, share)
    high = 1.0 if high > most - _NEAR else max(high, share)
    return share, low, high


def estimate_within(
    log_odds: np.ndarray, n_labeled: int, card: dict[str, Any], least: float, most: float
) -> tuple[float, float, float]:
    """`estimate` if the share is known to lie between `least` and `most`.

    The estimate is the mean of the shares in the range, weighted by the likelihood of the network's
    estimate: normal around the card's line, on the log-odds scale. Where classes overlap, the
    likelihood is flat and the result is near the middle of the range; where they do not, it is that
    of `estimate`. The interval is that of `estimate` cut to the range and widened to contain the
    new estimate; or the range itself, if the two do not overlap or the card has no line. Without a
    line, the estimate is that of `estimate`, clipped to the range.
    """
    share, low, high = estimate(log_odds, n_labeled, card)
    known = card.get("class_prior_interval") or {}
    if "center" not in known:
        return float(np.clip(share, least, most)), least, most
    intercept, slope = line_of(log_odds, known["center"])
    spread = np.exp(spread_evidence(log_odds, n_labeled) @ known["spread"]) * _NORMAL_TO_SPREAD
    shares = least + (most - least) * (np.arange(_SHARES) + 0.5) / _SHARES
    slope = max(slope, 0.0)  # an estimate never falls as the share rises
    off = (clipped_logit(share) - intercept - slope * clipped_logit(shares)) / spread
    weights = np.exp((off**2).min() / 2 - off**2 / 2)
    found = float(weights @ shares / weights.sum())
    low, high = max(low, least), min(high, most)
    if low >= high:
        return found, least, most
    # If the interval barely overlaps the range, the mean of the shares may lie outside the overlap.
    return found, min(low, found), max(high, found)


def trained_shares(card: Mapping[str, Any]) -> tuple[float, float]:
    """Least and greatest share of positives in the tasks of the last training run.

    Read from the config in the weights' card: one minus `prior.pi_final` and `prior.extensions.pi`,
    which are shares of negatives. Without a config, minus and plus infinity: no limits.
    """
    prior = card.get("config", {}).get("prior")
    if prior is None:
        return -np.inf, np.inf
    ranges = [prior["pi_final"], prior.get("extensions", {}).get("pi") or prior["pi_final"]]
    return 1 - max(high for _, high in ranges), 1 - min(low for low, _ in ranges)


def at_the_limit(share: float, trained: tuple[float, float]) -> bool:
    """Whether the estimate `share` lies within `_NEAR` of a limit of `trained_shares`."""
    least, most = trained
    return share < least + _NEAR or share > most - _NEAR


def resolution(log_odds: np.ndarray) -> float:
    """Share of the class variance that the probabilities explain, if they are calibrated.

    This is their variance over m (1 - m), where m is their mean: 0 if all probabilities are equal,
    1 if all are 0 or 1.
    """
    p = expit(log_odds)
    return float(p.var() / max(p.mean() * (1 - p.mean()), 1e-12))


def spread_evidence(log_odds: np.ndarray, n_labeled: int) -> np.ndarray:
    """Features [5] that predict the log error of an estimate: resolution and numbers of rows."""
    root = np.sqrt(resolution(log_odds))
    return np.array([1.0, root, root**2, np.log(len(log_odds)), np.log(n_labeled)])


def line_of(log_odds: np.ndarray, center: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope of the estimate in the true share, both on the log-odds scale."""
    root = np.sqrt(resolution(log_odds))
    return center[0] * (1 - root) ** 2, root + center[1] * root * (1 - root)


def clipped_logit(share: Any) -> np.ndarray:
    """Log-odds of one or several shares, which are clipped first."""
    return logit(np.clip(share, _EDGE, 1 - _EDGE))
