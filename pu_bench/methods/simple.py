"""Lines to stay above: everything positive, and logistic regression of labelled against not."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pu_bench.methods.base import Method, Prediction


class Logistic(Method):
    """Cross-fitted logistic regression, labelled against unlabelled, as P(positive).

    With g = P(labelled | x) and c = E[g | labelled], an unlabelled row is positive with
    probability (1 - c) / c * g / (1 - g), cut off at 1.
    """

    name = "logistic"
    title = "logistic P vs U"
    reference = "Elkan and Noto, KDD 2008, Section 2"
    is_probability = True

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        x = np.concatenate([P, U])
        s = np.arange(len(x)) < len(P)
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        g = cross_val_predict(model, x, s, cv=folds, method="predict_proba")[:, 1]
        c = g[: len(P)].mean()
        odds = g[len(P) :] / np.maximum(1 - g[len(P) :], 1e-12)
        score = np.minimum((1 - c) / c * odds, 1.0)
        return Prediction(score, (score >= 0.5).astype(int), float(score.mean()))


class AllPositive(Method):
    """Every unlabelled row called positive."""

    name = "all_positive"
    title = "all positive"
    reference = "a constant"
    is_probability = True

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        return Prediction(np.ones(len(U)), np.ones(len(U), dtype=int), 1.0)
