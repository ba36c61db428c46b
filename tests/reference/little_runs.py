"""Small runs of the benchmark: cheap methods, and methods made for a test."""

import numpy as np

from pu_bench import METHODS, Method, Prediction
from pu_bench.run import Plan

CHEAP = ["logistic", "all_positive"]


def plan_of(collection, methods=CHEAP, repeats=2, **options) -> Plan:
    return Plan(collection, methods, repeats, **options)


def figures(records) -> list:
    """Records without their times."""
    return [{key: value for key, value in r.items() if key != "seconds"} for r in records]


def register(monkeypatch, name, answer, sees=frozenset()) -> None:
    """A method whose `fit_predict` is `answer(P, U, seed, **seen)`."""
    body = {"name": name, "title": name, "reference": "a test", "sees": frozenset(sees)}
    body["fit_predict"] = lambda self, P, U, seed, **seen: answer(P, U, seed, **seen)
    monkeypatch.setitem(METHODS, name, type(name, (Method,), body))


def ones(U) -> Prediction:
    return Prediction(np.ones(len(U)), np.ones(len(U), dtype=int), None)
