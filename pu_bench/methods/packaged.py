"""Methods that `pulearn` has right, but for a row of a bag: Elkan and Noto's, and bagging."""

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.extras import extra_package
from pu_bench.methods.rows import standardized

_DRAWS = 50  # of rows held out, until some of them are labelled and enough are left to be fitted


class ElkanNoto(Method):
    """`pulearn.ElkanotoPuClassifier` over an SVM with Platt scaling, as in the paper.

    The package divides g = P(labelled | x) by c, the mean of g over labelled rows that it holds
    out: P(positive | x) over labelled and unlabelled rows together. The unlabelled rows' own
    probability is (1 - c) / c * g / (1 - g), the paper's weight w(x), cut off at 1 (rows are
    ranked by g). All of U is scored by the one SVM that was fitted on four fifths of it, as in the
    package: out of fold it ranks no better (mean AUC over three splits of each development table
    .816 instead of .822; the script was not kept). Columns are standardised; the SVM is
    scikit-learn's with balanced classes (else it calls every row unlabelled); its Platt scaling is
    out of fold. The package holds out a fifth of all rows: where that is none of the labelled
    ones, or too many, others are drawn.
    """

    name = "elkan_noto"
    title = "Elkan–Noto"
    reference = "Elkan and Noto, KDD 2008, Sections 2 and 3"
    is_probability = True

    def check(self):
        """See `Method.check`."""
        extra_package("pulearn", "bench")

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        pulearn = extra_package("pulearn", "bench")
        P, U = standardized(P, U)
        x = np.concatenate([P, U])
        s = (np.arange(len(x)) < len(P)).astype(int)
        svm = CalibratedClassifierCV(
            SVC(class_weight="balanced", random_state=seed), ensemble=False
        )
        for attempt in range(_DRAWS):
            fitted = pulearn.ElkanotoPuClassifier(svm, 0.2, random_state=seed + attempt)
            try:
                fitted.fit(x, s)
                break
            except ValueError:
                if attempt == _DRAWS - 1:
                    raise
        g = np.clip(fitted.predict_proba(U)[:, 1] * fitted.c, 0.0, 1.0 - 1e-12)
        score = np.minimum((1.0 - fitted.c) / fitted.c * g / (1.0 - g), 1.0)
        return Prediction(score, (score >= 0.5).astype(int), float(score.mean()), ranking=g)


class BaggingPU(Method):
    """`pulearn.BaggingPuClassifier`: trees on P against bags of U, rows scored out of bag.

    Each of 200 trees sees all of P and as many rows of U, drawn with replacement; an unlabelled
    row's score is the mean vote of the trees that did not see it (the paper's transductive
    variant). The vote is between P and a bag of U, so it is no probability of the class.

    The paper's classifiers are SVMs; trees are the package's and the usual choice. Of a bag the
    package (0.2) takes one row for left out that was in it, if any: it draws bags anew, one number
    of the generator too early. Bags that are kept rank as well on the development tables (mean AUC
    .811 both, accuracy .737 instead of .738, three splits of each; the script was not kept).
    """

    name = "bagging_pu"
    title = "bagging PU"
    reference = "Mordelet and Vert, Pattern Recognition Letters 2014, Algorithm 2"

    def check(self):
        """See `Method.check`."""
        extra_package("pulearn", "bench")

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        pulearn = extra_package("pulearn", "bench")
        x = np.concatenate([P, U])
        s = (np.arange(len(x)) < len(P)).astype(int)
        bagging = pulearn.BaggingPuClassifier(
            DecisionTreeClassifier(),
            n_estimators=200,
            max_samples=min(len(P), len(U) - 1),
            oob_score=True,
            random_state=seed,
        ).fit(x, s)
        votes = bagging.oob_decision_function_[len(P) :, 1]
        score = np.where(np.isfinite(votes), votes, bagging.predict_proba(U)[:, 1])
        return Prediction(score, (score >= 0.5).astype(int), None)
