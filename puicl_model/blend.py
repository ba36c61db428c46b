"""The network's order averaged with that of students, which learn on the table what it says."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from puicl_model.neighbors import Neighbors
from puicl_model.trees import Forest, cross_fitted, thin

# What students who agree with the network weigh together, what each reader weighs beside it, and
# how fast both fall with the correlation of ranks: measured on development tables
# (benchmarks/blend_weights.py).
SHARE = 0.4
READ = 0.6
POWER = 10
# Weights are whole numbers out of so many, so that equal mean ranks are equal.
_UNITS = 1000
_NONE = np.zeros((0, 0))


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
    """The network's log-odds averaged with its readers' and, by rank, with the students' answers.

    First the log-odds of the passes over the table and of those along the axes of kernels
    (`puicl_model.kernel_reading`) are averaged. A row's rank in that, its place among the
    unlabelled rows of the fit, is then averaged with its rank by each student, all weighed as far
    as they follow. The mean of the ranks is turned back into log-odds through the network's own
    over the table: the blend orders the rows, the network says how many are positive. A function of
    (fit, row), increasing in all scores.
    """

    arrays = ("network", "read_weights", "read", "students", "weights", "mixed")

    def __init__(self, passes: np.ndarray, students: np.ndarray, readers: np.ndarray = _NONE):
        """Of the unlabelled rows of the fit: log-odds of the network's passes [n_estimators, n_u]
        and of its readers [r, n_u], and scores of the students [k, n_u]."""
        network, reliable = passes.mean(axis=0), reliability(passes)
        self.network, self.students = np.sort(network), np.sort(students, axis=1)
        self.read_weights = weights_of_readers(network, readers, reliable)
        read = self._read(network, readers)
        self.read = np.sort(read)
        self.weights = weights_of(read, students, reliable)
        mixed = self._mixed(read, students)
        self.mixed = np.sort(mixed)
        self.fitted = self._through(mixed)

    @classmethod
    def from_arrays(cls, **arrays: np.ndarray) -> Self:
        """The blend with these attributes; see `arrays`."""
        self = cls.__new__(cls)
        for name in cls.arrays:
            setattr(self, name, arrays[name])
        return self

    def __call__(
        self, network: np.ndarray, students: np.ndarray, readers: np.ndarray = _NONE
    ) -> np.ndarray:
        """Log-odds [m] of other rows, of which the students say [k, m], the readers [r, m]."""
        return self._through(self._mixed(self._read(network, readers), students))

    def _read(self, network: np.ndarray, readers: np.ndarray) -> np.ndarray:
        first, *others = self.read_weights
        read = first * network
        for weight, log_odds in zip(others, readers, strict=True):
            read = read + weight * log_odds
        return read

    def _mixed(self, read: np.ndarray, students: np.ndarray) -> np.ndarray:
        first, *others = self.weights
        mixed = first * _rank(self.read, read)
        for weight, known, scores in zip(others, self.students, students, strict=True):
            mixed += weight * _rank(known, scores)
        return mixed

    def _through(self, mixed: np.ndarray) -> np.ndarray:
        n = len(self.network)
        return np.interp((_rank(self.mixed, mixed) - 1) / 2, np.arange(n), self.network)


def weights_of(
    network: np.ndarray, students: np.ndarray | Sequence[np.ndarray], reliable: float = 1.0
) -> np.ndarray:
    """Whole numbers [1 + k], what the ranks of the network and of each student weigh.

    A student weighs its part of `SHARE` as far as its scores [n_u] agree with the network's
    (`agreement`). A network answers rows that are alike alike: who cannot say what it says has
    missed what matters in this table, and is not the one who smooths out noise.
    """
    weights = [0]
    for student in students:
        share = SHARE / len(students) * agreement(network, student, reliable)
        weights.append(round(_UNITS * share))
    weights[0] = _UNITS - sum(weights)
    return np.array(weights)


def weights_of_readers(
    network: np.ndarray, readers: np.ndarray | Sequence[np.ndarray], reliable: float = 1.0
) -> np.ndarray:
    """[1 + r], what the log-odds [n_u] of the network and of each reader weigh, of 1.

    Each reader weighs `READ` as much as the network as far as they agree, as students do.
    """
    weights = np.array([1.0, *(READ * agreement(network, one, reliable) for one in readers)])
    return weights / weights.sum()


def agreement(
    one: np.ndarray, other: np.ndarray, reliable: float = 1.0, power: int = POWER
) -> float:
    """From 0 to 1: that power of the correlation of ranks [n_u], measured by `reliable`.

    Noise in the network's answers lowers what anybody can agree with them (Spearman's correction
    for attenuation). Who agrees as one of its passes does with the others agrees in full.
    """
    return min(1.0, max(0.0, _correlation(one, other) / reliable)) ** power


def reliability(passes: np.ndarray) -> float:
    """How passes [n_estimators, n_u] correlate with the sum of the others by rank, on average.

    1 where there is one pass, or no agreement to speak of.
    """
    together = passes.sum(axis=0)
    each = [_correlation(one, together - one) for one in passes] if len(passes) > 1 else [1.0]
    mean = float(np.mean(each))
    return mean if mean > 0 else 1.0


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Of ranks; 0 where all of one are equal."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])


def _rank(sorted_scores: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """How many of `sorted_scores` lie below each score, twice; equal ones count once."""
    below = np.searchsorted(sorted_scores, scores, side="left")
    upto = np.searchsorted(sorted_scores, scores, side="right")
    return below + upto  # whole numbers, so that equal mean ranks are equal
