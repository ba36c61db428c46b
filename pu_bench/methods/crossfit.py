"""Any probabilistic classifier as a PU method: labelled against unlabelled, out of fold."""

from abc import abstractmethod

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_bench.methods.base import Method, Prediction

FOLDS = 5


class CrossFitted(Method):
    """P-vs-U classifier whose out-of-fold g(x) = P(labelled | x) becomes P(positive).

    Every row is scored by a classifier that was fitted without it: a flexible one would otherwise
    know each unlabelled row as unlabelled.
    """

    reference = "Elkan and Noto, KDD 2008, Section 2"
    is_probability = True

    @abstractmethod
    def classifier(self, seed: int) -> ClassifierMixin:
        """A fresh classifier with `predict_proba`."""

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        g_labeled, g_unlabeled = cross_fitted(self.classifier, P, U, seed)
        score = posterior(g_labeled, g_unlabeled)
        # Some third of the rows have the score 1: g still orders them.
        label = (score >= 0.5).astype(int)
        return Prediction(score, label, float(score.mean()), ranking=g_unlabeled)


class Logistic(CrossFitted):
    """Cross-fitted logistic regression with scikit-learn's penalty, on standardised columns."""

    name = "logistic"
    title = "logistic P vs U"

    def classifier(self, seed):
        """See `CrossFitted.classifier`."""
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


class ExtraTrees(CrossFitted):
    """Cross-fitted extremely randomised trees (Geurts et al., Machine Learning 2006)."""

    name = "extra_trees"
    title = "ExtraTrees P vs U"

    def classifier(self, seed):
        """See `CrossFitted.classifier`."""
        return ExtraTreesClassifier(100, min_samples_leaf=5, random_state=seed)


class GradientBoosting(CrossFitted):
    """Cross-fitted histogram gradient boosting, kept small for tables of some hundred rows."""

    name = "gradient_boosting"
    title = "gradient boosting P vs U"

    def classifier(self, seed):
        """See `CrossFitted.classifier`."""
        return HistGradientBoostingClassifier(
            learning_rate=0.1,
            max_iter=50,
            max_leaf_nodes=8,
            min_samples_leaf=10,
            early_stopping=False,
            random_state=seed,
        )


def cross_fitted(make_classifier, P, U, seed) -> tuple[np.ndarray, np.ndarray]:
    """Out-of-fold P(labelled | x) of the rows of P [n_p, d] and of U [n_u, d].

    `make_classifier(seed)` gives a fresh classifier for each of 5 stratified folds (fewer where a
    side has fewer rows).
    """
    x = np.concatenate([P, U])
    s = np.arange(len(x)) < len(P)
    folds = StratifiedKFold(min(FOLDS, len(P), len(U)), shuffle=True, random_state=seed)
    g = np.empty(len(x))
    for train, test in folds.split(x, s):
        fitted = make_classifier(seed).fit(x[train], s[train].astype(int))
        g[test] = fitted.predict_proba(x[test])[:, 1]
    return g[: len(P)], g[len(P) :]


def posterior(g_labeled: np.ndarray, g_unlabeled: np.ndarray) -> np.ndarray:
    """P(positive | x, unlabelled) = (1 - c) / c * g / (1 - g) of the unlabelled rows, at most 1.

    c = P(labelled | positive) is estimated by the mean of g over the labelled rows, the estimator
    e1 of Elkan and Noto; the formula is their weight w(x) of Section 3.
    """
    c = np.clip(g_labeled.mean(), 1e-12, 1.0)
    odds = g_unlabeled / np.maximum(1.0 - g_unlabeled, 1e-12)
    return np.minimum((1.0 - c) / c * odds, 1.0)
