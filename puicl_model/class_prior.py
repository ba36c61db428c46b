"""The share of positives among the unlabelled rows: estimate, interval, and a user's own."""

from typing import Any

import numpy as np
from scipy.special import expit, logit

# A mean probability nearer to 0 or 1 says no more than this.
_EDGE = 0.01

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

    With `class_prior_calibration` in the weights' card (`benchmarks/calibrate_class_prior.py`
    writes it, from synthetic tasks): a line in `evidence` on the log-odds scale, give or take a
    spread that was fitted as a line in `spread_evidence`, times what covered the share `coverage`
    of the synthetic tasks. Without it: the mean probability, and NaN for the ends.
    """
    known = card.get("class_prior_calibration")
    if known is None:
        return float(expit(log_odds).mean()), np.nan, np.nan
    middle = evidence(log_odds, n_labeled) @ known["weights"]
    half = np.exp(spread_evidence(log_odds, n_labeled) @ known["spread"]) * known["quantile"]
    return tuple(float(expit(value)) for value in (middle, middle - half, middle + half))


def evidence(log_odds: np.ndarray, n_labeled: int) -> np.ndarray:
    """What the estimate is a line in, [7]: mean probability, doubt, numbers of rows.

    Doubt is the mean of 4 p (1 - p). A network that cannot tell the classes apart answers with the
    share it saw on average, and one that can answers with the table's.
    """
    p = expit(log_odds)
    mean, doubt = logit(np.clip(p.mean(), _EDGE, 1 - _EDGE)), 4 * (p * (1 - p)).mean()
    n, labeled = np.log(len(p)), np.log(n_labeled)
    return np.array([1.0, mean, doubt, doubt * mean, n, n * mean, labeled])


def spread_evidence(log_odds: np.ndarray, n_labeled: int) -> np.ndarray:
    """What the logarithm of the estimate's error is a line in, [5]."""
    p = expit(log_odds)
    doubt = 4 * (p * (1 - p)).mean()
    return np.array([1.0, doubt, doubt**2, np.log(len(p)), np.log(n_labeled)])


def fit_calibration(
    log_odds: list[np.ndarray], n_labeled: np.ndarray, true: np.ndarray, coverage: float
) -> dict[str, Any]:
    """The card's entry from tasks with known shares: log-odds [tasks][n_u], the rest [tasks].

    Least squares with a little ridge on the log-odds scale; errors are those of five-fold
    cross-fitting, so that the interval is not narrower than it may be.
    """
    x = np.array([evidence(*task) for task in zip(log_odds, n_labeled, strict=True)])
    y = logit(np.clip(true, _EDGE, 1 - _EDGE))
    fold = np.arange(len(y)) % 5
    error = np.empty(len(y))
    for held_out in range(5):
        inside = fold != held_out
        error[~inside] = np.abs(y - x @ _ridge(x[inside], y[inside]))[~inside]
    z = np.array([spread_evidence(*task) for task in zip(log_odds, n_labeled, strict=True)])
    spread = _ridge(z, np.log(error + _SMALL_ERROR))
    return {
        "weights": _ridge(x, y).tolist(),
        "spread": spread.tolist(),
        "quantile": float(np.quantile(error / np.exp(z @ spread), coverage)),
        "coverage": coverage,
        "n_tasks": len(y),
    }


def widened(
    calibration: dict[str, Any],
    log_odds: list[np.ndarray],
    n_labeled: np.ndarray,
    true: np.ndarray,
) -> dict[str, Any]:
    """`calibration` with an interval that covers its share of these tasks too, where it did not.

    What `fit_calibration` gives covers tasks like those it saw; real tables are other ones.
    """
    tasks = list(zip(log_odds, n_labeled, strict=True))
    middle = np.array([evidence(*task) @ calibration["weights"] for task in tasks])
    spread = np.array([spread_evidence(*task) @ calibration["spread"] for task in tasks])
    error = np.abs(logit(np.clip(true, _EDGE, 1 - _EDGE)) - middle)
    needed = float(np.quantile(error / np.exp(spread), calibration["coverage"], method="higher"))
    return {**calibration, "quantile": max(calibration["quantile"], needed)}


def _ridge(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.linalg.solve(x.T @ x + 1e-2 * np.eye(x.shape[1]), x.T @ y)
