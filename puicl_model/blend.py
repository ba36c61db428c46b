"""Blend the network's ranking with those of students that learn its output on the table."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.special import expit

from puicl_model.neighbors import Neighbors
from puicl_model.trees import Forest, cross_fitted, thin

# Total weight of students that fully agree with the network, and the power of the rank correlation
# by which it falls; measured on development tables (benchmarks/blend_weights.py).
SHARE = 0.4
POWER = 4
# Weights are integers that sum to this, so that equal mean ranks compare equal without rounding.
_UNITS = 1000


def taught_by(log_odds: np.ndarray, labeled: np.ndarray) -> np.ndarray:
    """The students' targets [n]: 1 for labelled rows, else P(positive) from `log_odds` [n_u].

    Students trained to separate labelled from unlabelled rows would take each unlabelled row for a
    negative. These instead learn the network's probabilities and smooth them over similar rows
    (distillation: Hinton, Vinyals and Dean, 2015; cross-fitted, so that no row sees its own).
    """
    answers = np.ones(len(labeled))
    answers[~labeled] = expit(log_odds)
    return answers


class Students:
    """Trees and nearest neighbors that have learnt the network's probabilities on one table."""

    def __init__(self, forest: Forest, neighbors: Neighbors):
        self.forest, self.neighbors = forest, neighbors

    @classmethod
    def taught(
        cls, X: np.ndarray, labeled: np.ndarray, answers: np.ndarray, rng: np.random.Generator
    ) -> tuple[Self, np.ndarray]:
        """Fit students to a table; return them and their out-of-fold predictions [2, n].

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
        """Each student's predictions [2, m] for rows X [m, w] outside the table."""
        return np.stack([self.forest(X), self.neighbors(X)])


class Blend:
    """Average of the network's log-odds and the students' predictions by rank.

    A row's rank is its place among the unlabelled rows of the fit. The mean of the ranks, weighted
    by `weights_of`, is mapped back to log-odds through the quantiles of the network's own: the
    blend ranks the rows, and the network decides how many are positive. A new row's result depends
    on the fit and that row alone, and increases with each of its scores.
    """

    arrays = ("network", "students", "weights", "mixed")

    def __init__(self, network: np.ndarray, students: np.ndarray):
        """network: [n_u], log-odds of the fit's unlabelled rows; students: [k, n_u], of k students.

        `fitted` [n_u] then holds the blended log-odds of these rows.
        """
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
        """Restore a blend from the attributes named in `arrays`."""
        self = cls.__new__(cls)
        for name in cls.arrays:
            setattr(self, name, arrays[name])
        return self

    def __call__(self, network: np.ndarray, students: np.ndarray) -> np.ndarray:
        """Blended log-odds [m] of other rows; network: [m], students: [k, m]."""
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
    """Integer weights [1 + k] of the ranks of the network and of each student.

    A student's weight is its part of `SHARE` times the correlation of its ranks [n_u] with the
    network's to the power `POWER`. The network scores similar rows alike, so a student that cannot
    follow it does not merely smooth out noise, but has missed what matters in this table.
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
    """Twice the mid-rank of each score among `sorted_scores`: 2 per lower one, 1 per equal one."""
    below = np.searchsorted(sorted_scores, scores, side="left")
    upto = np.searchsorted(sorted_scores, scores, side="right")
    return below + upto  # doubled, so that mid-ranks are integers
