"""PUICL as a method of the benchmark."""

from pathlib import Path

import numpy as np

from pu_bench.methods.base import Method, Prediction
from puicl_model import PUICLClassifier


class PUICLMethod(Method):
    """One frozen network, nothing fitted on the table."""

    name = "puicl"
    title = "PUICL"
    reference = "in-context PU learning (the paper this project implements)"
    is_probability = True

    def __init__(self, model: str | Path | None = None, **parameters):
        """`model` and further parameters are `PUICLClassifier`'s."""
        self.model, self.parameters = model, parameters

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        x = np.concatenate([P, U])
        s = (np.arange(len(x)) < len(P)).astype(int)
        fitted = PUICLClassifier(self.model, random_state=seed, **self.parameters).fit(x, s)
        score = fitted.unlabeled_proba_
        return Prediction(score, (score >= 0.5).astype(int), fitted.class_prior_)
