"""PUICL as a method of the benchmark: as it comes, in a single pass, and with its options."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from pu_bench.methods.base import Method, Prediction
from puicl_model import PUICLClassifier, find_weights


class PUICLMethod(Method):
    """One frozen network, nothing fitted on the table: the classifier's defaults."""

    name = "puicl"
    title = "PUICL"
    reference = "in-context PU learning (the paper this project implements)"
    is_probability = True
    parameters: ClassVar[dict[str, Any]] = {}

    def __init__(self, model: str | Path | None = None):
        """`model` is `PUICLClassifier`'s."""
        self.model = model

    def check(self) -> None:
        """See `Method.check`."""
        find_weights(self.model)

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        x = np.concatenate([P, U])
        s = (np.arange(len(x)) < len(P)).astype(int)
        quiet = {"random_state": seed, "verbose": False}  # the run shows its own progress
        fitted = PUICLClassifier(self.model, **quiet, **self.parameters).fit(x, s)
        score = fitted.unlabeled_proba_
        return Prediction(score, (score >= 0.5).astype(int), fitted.class_prior_)


class PUICLSinglePass(PUICLMethod):
    """The same in one forward pass, columns in their own order, in quantile scaling."""

    name = "puicl_single"
    title = "PUICL, one pass"
    parameters: ClassVar[dict[str, Any]] = {"n_estimators": 1}


class PUICLWithTrees(PUICLMethod):
    """Ranks averaged with trees and nearest rows fitted on the table: more than the network."""

    name = "puicl_trees"
    title = "PUICL + trees"
    parameters: ClassVar[dict[str, Any]] = {"blend": "trees"}


class PUICLPaper(PUICLMethod):
    """Weights of the paper's architecture and curriculum, on smaller tasks; default passes."""

    name = "puicl_paper"
    title = "PUICL, paper's model"

    def __init__(self):
        super().__init__("paper")
