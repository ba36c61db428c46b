"""What the hidden labels themselves would buy: a reference line, not a rival."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from pu_bench.methods.base import Method, Prediction

FOLDS = 5


class Oracle(Method):
    """Random forest on the unlabelled rows with their hidden labels, out of fold.

    Each row is scored by a forest fitted with the labels of the other folds, never its own.
    """

    name = "oracle"
    title = "random forest with hidden labels"
    reference = "Breiman, Machine Learning 2001; 5-fold"
    is_probability = True
    sees = frozenset({"labels"})

    def fit_predict(self, P, U, seed, labels):
        """See `Method.fit_predict`; `labels`: [n_u], 1 = positive."""
        y = np.asarray(labels).astype(int)
        folds = StratifiedKFold(
            min(FOLDS, int(np.bincount(y, minlength=2).min())), shuffle=True, random_state=seed
        )
        score = np.empty(len(U))
        for train, test in folds.split(U, y):
            forest = RandomForestClassifier(100, random_state=seed).fit(U[train], y[train])
            score[test] = forest.predict_proba(U[test])[:, 1]
        return Prediction(score, (score >= 0.5).astype(int), float(score.mean()))
