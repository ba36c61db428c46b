"""Fit the interval of the class prior that the weights' card holds; inference only reads it."""

from typing import Any

import numpy as np
from scipy.special import expit

from puicl_model.class_prior import clipped_logit, line_of, resolution, spread_evidence

# Limits of three bands of true shares; an interval must reach its coverage in each band.
BANDS = (0.3, 0.7)

# Added to errors before taking logarithms, so that errors near zero by chance do not dominate.
_SMALL_ERROR = 0.05

# Rounds in which an interval's line and spread are fitted alternately, and folds for its coverage.
_TURNS, _FOLDS = 5, 10


def fit_interval(
    log_odds: list[np.ndarray], n_labeled: np.ndarray, true: np.ndarray, coverage: float
) -> dict[str, Any]:
    """Fit the card's entry to tasks of known share: log-odds [tasks][n_u], other arrays [tasks].

    Alternately fits the line, by least squares weighted by the spread, and the spread, by least
    squares on the logarithms of absolute errors, both with a small ridge. The factor that covers
    the share `coverage` of the tasks is found by ten-fold cross-validation.
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
    """Widen `interval`, if needed, so that it reaches its coverage on these tasks as well.

    `fit_interval` only ensures coverage on tasks like those it was fitted to; real tables differ.
    """
    ratios = _ratios(interval, log_odds, n_labeled, true)
    needed = _covering(ratios, true, interval["coverage"])
    return {**interval, "quantile": max(interval["quantile"], needed)}


def _covering(ratios: np.ndarray, true: np.ndarray, coverage: float) -> float:
    """Least factor on the spread that covers the share `coverage` of the tasks in each of `BANDS`.

    ratios: [tasks], each estimate's distance from the line in units of the spread; true: [tasks],
    the true shares.
    """
    bands = np.searchsorted(BANDS, true, side="right")
    parts = [ratios[bands == band] for band in range(len(BANDS) + 1)]
    return max(float(np.quantile(p, coverage, method="higher")) for p in parts if len(p))


def _fitted(log_odds: list[np.ndarray], n_labeled: np.ndarray, true: np.ndarray) -> dict[str, Any]:
    """Fit `center` and `spread` of an interval."""
    t, root = clipped_logit(true), np.sqrt([resolution(task) for task in log_odds])
    x = np.column_stack([(1 - root) ** 2, root * (1 - root) * t])
    y = clipped_logit([expit(task).mean() for task in log_odds]) - root * t
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
    """Distances [tasks] of the estimates from the interval's line, in units of its spread."""
    found = []
    for task, n, t in zip(log_odds, n_labeled, clipped_logit(true), strict=True):
        intercept, slope = line_of(task, interval["center"])
        error = abs(clipped_logit(expit(task).mean()) - intercept - slope * t)
        found.append(error / np.exp(spread_evidence(task, n) @ interval["spread"]))
    return np.array(found)


def _ridge(squares: np.ndarray, products: np.ndarray) -> np.ndarray:
    return np.linalg.solve(squares + 1e-2 * np.eye(len(squares)), products)
