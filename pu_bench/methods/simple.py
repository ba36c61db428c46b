"""Lines to stay above: everything positive, and a coin for each row."""

import numpy as np

from pu_bench.methods.base import Method, Prediction


class AllPositive(Method):
    """Every unlabelled row called positive."""

    name = "all_positive"
    title = "all positive"
    reference = "a constant"
    is_probability = True

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        return Prediction(np.ones(len(U)), np.ones(len(U), dtype=int), 1.0)


class RandomScores(Method):
    """A uniform score for every unlabelled row."""

    name = "random"
    title = "random"
    reference = "no information"

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        score = np.random.default_rng(seed).uniform(size=len(U))
        return Prediction(score, (score >= 0.5).astype(int), None)
