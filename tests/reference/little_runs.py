"""Small runs of the benchmark: cheap methods, and methods made for a test."""

import numpy as np

from pu_bench import METHODS, Method, Prediction
from pu_bench.run import Plan
from pu_bench.sweeps import Pool

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


def labeled_and_not(n_p=30, n_u=60):
    """Labelled positives N(0, I) and unlabelled rows N(1, I)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_p, 2)), rng.normal(size=(n_u, 2)) + 1


def make_pool(n=1000, d=4, name="pool", kind="real") -> Pool:
    rng = np.random.default_rng(0)
    positive = np.arange(2 * n) < n
    x = rng.normal(size=(2 * n, d))
    x[:, 0] += 2.0 * positive
    x[:, -1] = np.arange(2 * n)  # names the row
    return Pool(name, kind, x, positive)
