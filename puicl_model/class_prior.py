"""The share of positives among the unlabelled rows: estimate, interval, and a user's own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, logit

# A share nearer to 0 or 1 is as good as this one.
_EDGE = 0.01

# An end of an interval that comes so near to the least or greatest share in training is none.
_NEAR = 0.05

# Keeps the logarithm of an error that is near zero by chance from counting much.
_SMALL_ERROR = 0.05

# An estimate that moves less than so with the true share says nothing of it.
_LEAST_SLOPE = 0.05

# Shares below, between and above, of each of which an interval has to cover its part.
BANDS = (0.3, 0.7)

# A card's spread is e to the mean logarithm of errors; a normal's standard deviation is that much
# more. Shares that are tried in a range.
_NORMAL_TO_SPREAD, _SHARES = np.exp((np.euler_gamma + np.log(2)) / 2), 1000

# Line and spread of an interval are fitted in turn, as often; and in as many parts.
_TURNS, _FOLDS = 5, 10


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


def estimate(
    log_odds: np.ndarray, n_labeled: int, card: dict[str, Any]
) -> tuple[float, float, float]:
    """Class prior and the ends of its interval, from the unlabelled rows' `log_odds` [n_u].

    The estimate is the mean probability. Where classes overlap it hardly moves with the share, and
    lies near those of training whatever the table's own is: no interval around it would hold a
    share of .15 as often as one of .5. So the ends are the least and the greatest share at which
    such an estimate is nothing unusual (a test, inverted). What estimates tables have is in the
    weights' card, as `class_prior_interval` (`benchmarks/calibrate_class_prior.py` writes it): on
    the log-odds scale a line in the true share, flat where the probabilities resolve nothing and
    the true share itself where they resolve all (`center`, `resolution`), give or take a spread
    that goes by `spread_evidence`, times what covered `coverage` of the tasks. The ends are NaN
    without it. No task had a share beyond `trained_shares`, and a network that never saw one
    answers with those it saw: an end near to their limit opens to 0 or 1.
    """
    share = float(expit(log_odds).mean())
    known = card.get("class_prior_interval") or {}
    if "center" not in known:
        return share, np.nan, np.nan
    intercept, slope = _line(log_odds, known["center"])
    half = np.exp(spread_evidence(log_odds, n_labeled) @ known["spread"]) * known["quantile"]
    slope = max(slope, _LEAST_SLOPE)
    least, most = trained_shares(card)
    # Where little is resolved, an estimate off the line is no sign of a share beyond all seen.
    middle = np.clip((_logit(share) - intercept) / slope, _logit(least), _logit(most))
    low, high = float(expit(middle - half / slope)), float(expit(middle + half / slope))
    low = 0.0 if low < least + _NEAR else min(low, share)
    high = 1.0 if high > most - _NEAR else max(high, share)
    return share, low, high


def estimate_within(
    log_odds: np.ndarray, n_labeled: int, card: dict[str, Any], least: float, most: float
) -> tuple[float, float, float]:
    """`estimate` where the share is known to lie between `least` and `most`.

    The estimate is the mean of the shares there, weighed by how likely each makes such answers as
    the network's: normal around the card's line, on the log-odds scale. Where classes overlap the
    answers say little and it is near the middle of the range; where they do not, it is what
    `estimate` finds. The ends are those of `estimate` as far as they lie within, with the estimate
    between them, or the range's own where none does or the card has no line.
    """
    share, low, high = estimate(log_odds, n_labeled, card)
    known = card.get("class_prior_interval") or {}
    if "center" not in known:
        return float(np.clip(share, least, most)), least, most
    intercept, slope = _line(log_odds, known["center"])
    spread = np.exp(spread_evidence(log_odds, n_labeled) @ known["spread"]) * _NORMAL_TO_SPREAD
    shares = least + (most - least) * (np.arange(_SHARES) + 0.5) / _SHARES
    slope = max(slope, 0.0)  # an estimate never falls as the share rises
    off = (_logit(share) - intercept - slope * _logit(shares)) / spread
    weights = np.exp((off**2).min() / 2 - off**2 / 2)
    found = float(weights @ shares / weights.sum())
    low, high = max(low, least), min(high, most)
    if low >= high:
        return found, least, most
    # Of an interval that hardly reaches into the range, the mean of the shares may lie outside.
    return found, min(low, found), max(high, found)


def trained_shares(card: Mapping[str, Any]) -> tuple[float, float]:
    """Least and greatest share of positives in the tasks of the last run.

    From the config in the weights' card: one minus `prior.pi_final` and `prior.extensions.pi`,
    which are shares of negatives. Minus and plus infinity, beyond which no share is, where the
    card has none.
    """
    prior = card.get("config", {}).get("prior")
    if prior is None:
        return -np.inf, np.inf
    ranges = [prior["pi_final"], prior.get("extensions", {}).get("pi") or prior["pi_final"]]
    return 1 - max(high for _, high in ranges), 1 - min(low for low, _ in ranges)


def at_the_limit(share: float, trained: tuple[float, float]) -> bool:
    """Whether the estimate `share` is nearer to a limit of `trained_shares` than an end may be."""
    least, most = trained
    return share < least + _NEAR or share > most - _NEAR


def resolution(log_odds: np.ndarray) -> float:
    """The share of the classes' variance that the probabilities explain, if they are right.

    Their variance over m (1 - m), m their mean: 0 where all are alike, 1 where all are sure.
    """
    p = expit(log_odds)
    return float(p.var() / max(p.mean() * (1 - p.mean()), 1e-12))


def spread_evidence(log_odds: np.ndarray, n_labeled: int) -> np.ndarray:
    """What the logarithm of an estimate's error is a line in, [5]: resolution, numbers of rows."""
    root = np.sqrt(resolution(log_odds))
    return np.array([1.0, root, root**2, np.log(len(log_odds)), np.log(n_labeled)])


def _line(log_odds: np.ndarray, center: Sequence[float]) -> tuple[float, float]:
    """Intercept and slope of estimates in the true share, log-odds both: flat at resolution 0."""
    root = np.sqrt(resolution(log_odds))
    return center[0] * (1 - root) ** 2, root + center[1] * root * (1 - root)


def fit_interval(
    log_odds: list[np.ndarray], n_labeled: np.ndarray, true: np.ndarray, coverage: float
) -> dict[str, Any]:
    """The card's entry from tasks with known shares: log-odds [tasks][n_u], the rest [tasks].

    The line by least squares weighted by the spread, the spread by least squares on the logarithm
    of the errors' size, in turn, both with a little ridge. What covers the share `coverage` is told
    by tasks that were left out of a fit, a tenth at a time.
    """
    apart = np.arange(len(true)) % _FOLDS
    ratios = np.empty(len(true))
    for fold in range(_FOLDS):
        rest, part = np.flatnonzero(apart != fold), np.flatnonzero(apart == fold)
        fitted = _fitted([log_odds[task] for task in rest], n_labeled[rest], true[rest])
        ratios[part] = _ratios(
            fitted, [log_odds[task] for task in part], n_labeled[part], true[part]
        )
    return {
        **_fitted(log_odds, n_labeled, true),
        "quantile": _covering(ratios, true, coverage),
        "coverage": coverage,
        "n_tasks": len(true),
    }


def widened(
    interval: dict[str, Any],
    log_odds: list[np.ndarray],
    n_labeled: np.ndarray,
    true: np.ndarray,
) -> dict[str, Any]:
    """`interval` made to cover its share of these tasks too, where it did not.

    What `fit_interval` gives covers tasks like those it saw; real tables are other ones.
    """
    ratios = _ratios(interval, log_odds, n_labeled, true)
    needed = _covering(ratios, true, interval["coverage"])
    return {**interval, "quantile": max(interval["quantile"], needed)}


def _covering(ratios: np.ndarray, true: np.ndarray, coverage: float) -> float:
    """What covers the share `coverage` of the tasks of rare, of middling and of frequent positives.

    ratios, true: [tasks], an estimate's distance from the line in units of the spread, and the
    share.
    """
    bands = np.searchsorted(BANDS, true, side="right")
    parts = [ratios[bands == band] for band in range(len(BANDS) + 1)]
    return max(float(np.quantile(p, coverage, method="higher")) for p in parts if len(p))


def _fitted(log_odds: list[np.ndarray], n_labeled: np.ndarray, true: np.ndarray) -> dict[str, Any]:
    """`center` and `spread` of an interval."""
    t, root = _logit(true), np.sqrt([resolution(task) for task in log_odds])
    x = np.column_stack([(1 - root) ** 2, root * (1 - root) * t])
    y = _logit([expit(task).mean() for task in log_odds]) - root * t
    tasks = zip(log_odds, n_labeled, strict=True)
    evidence = np.array([spread_evidence(*task) for task in tasks])
    size = np.ones(len(t))
    for _ in range(_TURNS):
        weighted = x * (np.mean(size**2) / size**2)[:, None]
        center = _ridge(weighted.T @ x, weighted.T @ y)
        error = np.abs(y - x @ center)
        spread = _ridge(evidence.T @ evidence, evidence.T @ np.log(error + _SMALL_ERROR))
        size = np.exp(evidence @ spread)
    return {"center": center.tolist(), "spread": spread.tolist()}


def _ratios(
    interval: dict[str, Any],
    log_odds: list[np.ndarray],
    n_labeled: np.ndarray,
    true: np.ndarray,
) -> np.ndarray:
    """[tasks]: how far the estimates are from the interval's line, in units of its spread."""
    found = []
    for task, n, t in zip(log_odds, n_labeled, _logit(true), strict=True):
        intercept, slope = _line(task, interval["center"])
        error = abs(_logit(expit(task).mean()) - intercept - slope * t)
        found.append(error / np.exp(spread_evidence(task, n) @ interval["spread"]))
    return np.array(found)


def _ridge(squares: np.ndarray, products: np.ndarray) -> np.ndarray:
    return np.linalg.solve(squares + 1e-2 * np.eye(len(squares)), products)


def _logit(share: Any) -> np.ndarray:
    return logit(np.clip(share, _EDGE, 1 - _EDGE))
