"""Metrics of a prediction for the unlabelled rows, given their hidden classes."""

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from pu_bench.methods import Prediction

# How far from 0 and 1 rounding may carry a share.
_ROUNDING = 1e-6

N_BINS = 10
METRICS = (
    "auc",
    "accuracy",
    "f1_negative",
    "f1_positive",
    "balanced_accuracy",
    "brier",
    "ece",
    "pi_error",
)


@dataclass(frozen=True)
class Judged:
    """A judged prediction.

    `metrics`: by name, None where undefined. `reliability`: for each non-empty one of 10 equal bins
    of the score, the bin's number from 0, the number of rows, the sum of scores and the number of
    positives; None for methods whose score is no probability. `collapsed`: whether all rows have
    the same score.
    """

    metrics: dict[str, float | None]
    reliability: list[list[float]] | None
    collapsed: bool


def judge(prediction: Prediction, y: np.ndarray, is_probability: bool) -> Judged:
    """Compare a prediction with the classes y [n_u], 1 = positive.

    AUC uses `Prediction.order`, in which rows whose scores were clipped at 1 are not tied. F1 is 0
    if its class is never predicted. Brier score and ECE (10 equal bins, weighted by rows) are
    computed for probabilities only. `pi_error` is the absolute error of the estimated share of
    positives, if the method estimates it. Raises `ValueError` for a prediction of another length,
    scores or an estimate that are not finite, labels other than 0 and 1, and probabilities outside
    [0, 1].
    """
    score, label = np.asarray(prediction.score, float), np.asarray(prediction.label)
    order = np.asarray(prediction.order, float)
    _check(score, label, prediction.class_prior, y, is_probability)
    _check_scores(order, y)
    metrics: dict[str, float | None] = {
        "auc": float(roc_auc_score(y, order)),
        "accuracy": float((label == y).mean()),
        "f1_negative": float(f1_score(y, label, pos_label=0, zero_division=0.0)),
        "f1_positive": float(f1_score(y, label, pos_label=1, zero_division=0.0)),
        "balanced_accuracy": float(balanced_accuracy_score(y, label)),
        "brier": None,
        "ece": None,
        "pi_error": None,
    }
    reliability = None
    if is_probability:
        bins = _reliability(score, y)
        metrics["brier"] = float(((score - y) ** 2).mean())
        metrics["ece"] = float(np.abs(bins[:, 1] - bins[:, 2]).sum() / len(y))
        reliability = [
            [place, int(n), round(total, 4), int(positives)]
            for place, (n, total, positives) in enumerate(bins.tolist())
            if n
        ]
    if prediction.class_prior is not None:
        metrics["pi_error"] = float(abs(prediction.class_prior - y.mean()))
    return Judged(metrics, reliability, collapsed=bool(np.ptp(order) == 0))


def _check(score, label, class_prior, y, is_probability) -> None:
    _check_scores(score, y)
    if label.shape != y.shape:
        raise ValueError(f"labels {label.shape} for {len(y)} unlabelled rows")
    if not np.isin(label, (0, 1)).all():
        raise ValueError("labels other than 0 and 1")
    if is_probability and (score.min() < 0 or score.max() > 1):
        raise ValueError(f"probabilities from {score.min():.3g} to {score.max():.3g}")
    if class_prior is not None and not -_ROUNDING <= class_prior <= 1 + _ROUNDING:  # not NaN either
        raise ValueError(f"the estimated class prior is {class_prior:.3g}, not from 0 to 1")


def _check_scores(score, y) -> None:
    if score.shape != y.shape:
        raise ValueError(f"scores {score.shape} for {len(y)} unlabelled rows")
    if not np.isfinite(score).all():
        raise ValueError(f"{int((~np.isfinite(score)).sum())} scores are not finite")


def _reliability(score: np.ndarray, y: np.ndarray) -> np.ndarray:
    """[10, 3]: rows, sum of scores and positives of each bin; a score of 1 is in the last."""
    place = np.minimum((score * N_BINS).astype(int), N_BINS - 1)
    return np.column_stack(
        [np.bincount(place, weights, N_BINS) for weights in (None, score, y.astype(float))]
    )
