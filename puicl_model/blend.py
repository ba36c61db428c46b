"""The network's order averaged with that of students, which learn on the table what it says."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.special import expit

from puicl_model.neighbors import Neighbors
from puicl_model.trees import Forest, cross_fitted, thin

# What students who agree with the network weigh together, and how fast that falls with the
# correlation of their ranks: measured on development tables (benchmarks/blend_weights.py).
SHARE = 0.4
POWER = 4
# Weights are whole numbers out of so many, so that equal mean ranks are equal.
_UNITS = 1000


def taught_by(log_odds: np.ndarray, labeled: np.ndarray) -> np.ndarray:
    """P(positive) [n] by the network: 1 where a row is labelled, else of its `log_odds` [n_u].

    Students that tell labelled rows from unlabelled ones take each unlabelled row for a negative.
    These learn what the network makes of it, and smooth that over rows that are alike
    (distillation: Hinton, Vinyals and Dean, 2015; cross-fitted, so that no row keeps its own).
    """
    answers = np.ones(len(labeled))
    answers[~labeled] = expit(log_odds)
    return answers


class Students:
    """Trees and the nearest rows, taught the network's probabilities on one table."""

    def __init__(self, forest: Forest, neighbors: Neighbors):
        self.forest, self.neighbors = forest, neighbors

    @classmethod
    def taught(
        cls, X: np.ndarray, labeled: np.ndarray, answers: np.ndarray, rng: np.random.Generator
    ) -> tuple[Self, np.ndarray]:
        """Students of a table, and what each says of rows whose answer it has not seen, [2, n].

        X: [n, w] of any scale; labeled: boolean [n], at least 2 of each kind; answers: [n], see
        `taught_by`.
        """
        trees, forest = cross_fitted(X, labeled, answers, rng)
        kept = np.sort(thin(labeled, rng))
        neighbors = Neighbors.of(X[kept], answers[kept])
        near = np.empty(len(X))
        near[kept] = neighbors.of_others()
        others = np.setdiff1d(np.arange(len(X)), kept)
        if len(others):
            near[others] = neighbors(X[others])
        return cls(forest, neighbors), np.stack([trees, near])

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """What each says [2, m] of other rows [m, w]."""
        return np.stack([self.forest(X), self.neighbors(X)])


class Blend:
    """The network's log-odds averaged with the students' answers by rank.

    A row's rank is its place among the unlabelled rows of the fit. The mean of the ranks, weighed
    by `weights_of`, is turned back into log-odds through the network's own: the blend orders the
    rows, the network says how many are positive. A function of (fit, row), increasing in all
    scores.
    """

    arrays = ("network", "students", "weights", "mixed")

    def __init__(self, network: np.ndarray, students: np.ndarray):
        """Scores of the unlabelled rows of the fit: [n_u], and [k, n_u] of k students."""
        self.network, self.students = np.sort(network), np.sort(students, axis=1)
        own = _rank(self.network, network)
        self.weights = weights_of(
            own, [_rank(*pair) for pair in zip(self.students, students, strict=True)]
        )
        mixed = self._mixed(network, students)
        self.mixed = np.sort(mixed)
        self.fitted = self._through(mixed)

    @classmethod
    def from_arrays(cls, **arrays: np.ndarray) -> Self:
        """The blend with these attributes; see `arrays`."""
        self = cls.__new__(cls)
        for name in cls.arrays:
            setattr(self, name, arrays[name])
        return self

    def __call__(self, network: np.ndarray, students: np.ndarray) -> np.ndarray:
        """Log-odds [m] of other rows, of which the students say [k, m]."""
        return self._through(self._mixed(network, students))

    def _mixed(self, network: np.ndarray, students: np.ndarray) -> np.ndarray:
        first, *others = self.weights
        mixed = first * _rank(self.network, network)
        for weight, known, scores in zip(others, self.students, students, strict=True):
            mixed += weight * _rank(known, scores)
        return mixed

    def _through(self, mixed: np.ndarray) -> np.ndarray:
        n = len(self.network)
        return np.interp((_rank(self.mixed, mixed) - 1) / 2, np.arange(n), self.network)


def weights_of(network: np.ndarray, students: Sequence[np.ndarray]) -> np.ndarray:
    """Whole numbers [1 + k], what the ranks of the network and of each student weigh.

    A student weighs its part of `SHARE` as far as its ranks [n_u] go with the network's. The
    network gives similar rows similar answers, so that a student who cannot follow it does not
    merely smooth out noise, but has missed what matters in this table.
    """
    weights = [0]
    for student in students:
        agreement = 0.0
        if np.ptp(network) > 0 and np.ptp(student) > 0:
            agreement = max(0.0, float(np.corrcoef(network, student)[0, 1]))
        weights.append(round(_UNITS * SHARE / len(students) * agreement**POWER))
    weights[0] = _UNITS - sum(weights)
    return np.array(weights)


def _rank(sorted_scores: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """How many of `sorted_scores` lie below each score, twice; equal ones count once."""
    below = np.searchsorted(sorted_scores, scores, side="left")
    upto = np.searchsorted(sorted_scores, scores, side="right")
    return below + upto  # whole numbers, so that equal mean ranks are equal
