"""Methods that score the unlabelled rows of a `PUTask`; higher is more positive."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_bench.protocol import PUTask
from puicl_model import PUICLClassifier

Method = Callable[[PUTask, int], np.ndarray]


def puicl(model: str | Path | None) -> Method:
    """PUICL with the given weights: P(positive) of each unlabelled row, [n_u]."""

    def scores(task: PUTask, seed: int) -> np.ndarray:
        return PUICLClassifier(model).fit(task.x, task.s).unlabeled_proba_

    return scores


def logistic_positive_vs_unlabeled(task: PUTask, seed: int) -> np.ndarray:
    """Cross-fitted logistic regression, labelled against unlabelled, as P(positive) [n_u].

    With g = P(labelled | x) and c = E[g | labelled], an unlabelled row is positive with
    probability (1 - c) / c * g / (1 - g), cut off at 1 (Elkan and Noto, 2008, Section 2).
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    g = cross_val_predict(model, task.x, task.s, cv=folds, method="predict_proba")[:, 1]
    c = g[: task.n_labeled].mean()
    odds = g[task.n_labeled :] / np.maximum(1 - g[task.n_labeled :], 1e-12)
    return np.minimum((1 - c) / c * odds, 1.0)


def all_positive(task: PUTask, seed: int) -> np.ndarray:
    """Every unlabelled row called positive."""
    return np.ones(len(task.y))
