"""Novelty detection on the labelled positives alone: what looks unlike them is negative."""

from sklearn.ensemble import IsolationForest as _IsolationForest
from sklearn.svm import OneClassSVM as _OneClassSVM

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.global_state import global_generators_seeded
from pu_bench.methods.rows import standardized


class OneClassSVM(Method):
    """The support of P by a one-class SVM, scikit-learn's defaults on standardised columns.

    Columns are standardised over the pooled rows; nothing else is learnt from U.
    """

    name = "one_class_svm"
    title = "one-class SVM"
    reference = "Schölkopf et al., Neural Computation 2001"

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        P, U = standardized(P, U)
        with global_generators_seeded(seed):  # libsvm is seeded from numpy's
            score = _OneClassSVM().fit(P).decision_function(U)
        return Prediction(score, (score >= 0).astype(int), None)


class IsolationForest(Method):
    """How quickly random splits isolate a row from P, scikit-learn's defaults."""

    name = "isolation_forest"
    title = "isolation forest"
    reference = "Liu, Ting and Zhou, ICDM 2008"

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        score = _IsolationForest(random_state=seed).fit(P).decision_function(U)
        return Prediction(score, (score >= 0).astype(int), None)
