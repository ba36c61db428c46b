"""The share of positives among the unlabelled rows: estimate, interval, and a user's own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit, logit

# A share nearer to 0 or 1 is as good as this one.
_EDGE = 0.01

# An end of an interval that comes so near to the least or greatest share in training is none.
_NEAR = 0.05

# Keeps the logarithm of an error that is near zero by chance from counting much.
_SMALL_ERROR = 0.05


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

    The estimate is the mean probability. The ends are NaN unless the weights' card has a
    `class_prior_interval` (`benchmarks/calibrate_class_prior.py` writes it): give or take, on the
    log-odds scale, a spread that was fitted as a line in `spread_evidence` to the errors on
    synthetic tasks, times what covered the share `coverage` of them. No task had a share beyond
    `trained_shares`, and a network that never saw one answers with those it saw: an end near to
    their limit opens to 0 or 1.
    """
    share = float(expit(log_odds).mean())
    known = card.get("class_prior_interval")
    if known is None:
        return share, np.nan, np.nan
    middle = _logit(share)
    half = np.exp(spread_evidence(log_odds, n_labeled) @ known["spread"]) * known["quantile"]
    low, high = expit(middle - half), expit(middle + half)
    least, most = trained_shares(card)
    low = 0.0 if low < least + _NEAR else min(low, share)
    high = 1.0 if high > most - _NEAR else max(high, share)
    return share, float(low), float(high)


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


def spread_evidence(log_odds: np.ndarray, n_labeled: int) -> np.ndarray:
    """What the logarithm of the estimate's error is a line in, [5]: doubt, numbers of rows.

    Doubt is the mean of 4 p (1 - p). A network that cannot tell the classes apart answers with the
    share it saw on average, and one that can answers with the table's.
    """
    p = expit(log_odds)
    doubt = 4 * (p * (1 - p)).mean()
    return np.array([1.0, doubt, doubt**2, np.log(len(p)), np.log(n_labeled)])


def fit_interval(
    log_odds: list[np.ndarray], n_labeled: np.ndarray, true: np.ndarray, coverage: float
) -> dict[str, Any]:
    """The card's entry from tasks with known shares: log-odds [tasks][n_u], the rest [tasks].

    Least squares with a little ridge on the logarithm of the errors' size.
    """
    tasks = list(zip(log_odds, n_labeled, strict=True))
    error, x = _errors(log_odds, true), np.array([spread_evidence(*task) for task in tasks])
    y = np.log(error + _SMALL_ERROR)
    spread = np.linalg.solve(x.T @ x + 1e-2 * np.eye(x.shape[1]), x.T @ y)
    return {
        "spread": spread.tolist(),
        "quantile": float(np.quantile(error / np.exp(x @ spread), coverage)),
        "coverage": coverage,
        "n_tasks": len(y),
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
    tasks = zip(log_odds, n_labeled, strict=True)
    spread = np.array([spread_evidence(*task) @ interval["spread"] for task in tasks])
    needed = np.quantile(
        _errors(log_odds, true) / np.exp(spread), interval["coverage"], method="higher"
    )
    return {**interval, "quantile": max(interval["quantile"], float(needed))}


def _errors(log_odds: list[np.ndarray], true: np.ndarray) -> np.ndarray:
    """[tasks]: how far the mean probabilities lie from the true shares, on the log-odds scale."""
    return np.abs(_logit(true) - _logit([expit(task).mean() for task in log_odds]))


def _logit(share: Any) -> np.ndarray:
    return logit(np.clip(share, _EDGE, 1 - _EDGE))
