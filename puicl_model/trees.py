"""Cross-fitted extremely randomised trees, labelled against unlabelled: the blend's other half."""

from typing import Self

import numpy as np
from scipy.special import logit
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import StratifiedKFold

_FOLDS = 5
_TREES = 200
# More rows teach these trees little and make them large.
_MOST_ROWS = 20_000


class TreeScores:
    """P(labelled | row) by trees that have not seen the row, and for new rows by all of them."""

    def __init__(self, X: np.ndarray, labeled: np.ndarray, rng: np.random.Generator):
        """X: [n, w] of any scale; labeled: boolean [n], at least 2 of each kind."""
        kept = np.sort(_thin(labeled, rng))
        folds = StratifiedKFold(
            min(_FOLDS, int(labeled[kept].sum()), int((~labeled[kept]).sum())),
            shuffle=True,
            random_state=int(rng.integers(2**31)),
        )
        self._forests = []
        held_out = np.full(len(X), np.nan)
        for rest, part in folds.split(X[kept], labeled[kept]):
            forest = ExtraTreesClassifier(
                _TREES, min_samples_leaf=3, random_state=int(rng.integers(2**31))
            ).fit(_small(X[kept[rest]]), labeled[kept[rest]])
            held_out[kept[part]] = forest.predict_proba(_small(X[kept[part]]))[:, 1]
            self._forests.append(forest)
        others = np.flatnonzero(np.isnan(held_out))
        if len(others):
            held_out[others] = self(X[others])
        self.fitted = held_out

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """[m] of rows that were not in the table."""
        return np.mean([forest.predict_proba(_small(X))[:, 1] for forest in self._forests], axis=0)


class Blend:
    """The network's log-odds averaged with the trees' scores by rank.

    A row's rank is its place among the unlabelled rows of the fit, from 0 to 1. The mean of both
    ranks is turned back into log-odds through the network's own: the blend orders the rows, the
    network says how many are positive. A function of (fit, row), increasing in both scores.
    """

    def __init__(self, network: np.ndarray, trees: np.ndarray):
        """Scores [n_u] of the unlabelled rows of the fit."""
        self.network, self.trees = np.sort(network), np.sort(trees)
        mixed = self._mixed(network, trees)
        self.mixed = np.sort(mixed)
        self.fitted = self._through(mixed)

    @classmethod
    def from_sorted(cls, network: np.ndarray, trees: np.ndarray, mixed: np.ndarray) -> Self:
        """The blend with these attributes."""
        self = cls.__new__(cls)
        self.network, self.trees, self.mixed = network, trees, mixed
        return self

    def __call__(self, network: np.ndarray, trees: np.ndarray) -> np.ndarray:
        """Log-odds [m] of other rows."""
        return self._through(self._mixed(network, trees))

    def _mixed(self, network: np.ndarray, trees: np.ndarray) -> np.ndarray:
        return (_rank(self.network, network) + _rank(self.trees, trees)) / 2

    def _through(self, mixed: np.ndarray) -> np.ndarray:
        n = len(self.network)
        return np.interp(_rank(self.mixed, mixed) * n - 0.5, np.arange(n), self.network)


def posterior(scores: np.ndarray, labeled: np.ndarray) -> np.ndarray:
    """P(positive) [n_u] of the unlabelled rows from P(labelled | row) [n] (Elkan and Noto 2008).

    ((1 - c) / c) g / (1 - g) with c the mean of g over the labelled rows, cut off at 1.
    """
    c = np.clip(scores[labeled].mean(), 1e-6, 1 - 1e-6)
    g = np.clip(scores[~labeled], 1e-6, 1 - 1e-6)
    return np.minimum(np.exp(logit(g) - logit(c)), 1.0)


def _rank(sorted_scores: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Share of `sorted_scores` below each score, equal ones counted half."""
    below = np.searchsorted(sorted_scores, scores, side="left")
    upto = np.searchsorted(sorted_scores, scores, side="right")
    return (below + upto) / (2 * len(sorted_scores))


def _small(X: np.ndarray) -> np.ndarray:
    """Within float32, which the trees need."""
    return np.clip(X, -1e30, 1e30).astype(np.float32)


def _thin(labeled: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """At most `_MOST_ROWS` positions, as many of each kind as there are, up to half of them."""
    kinds = [rng.permutation(np.flatnonzero(kind)) for kind in (labeled, ~labeled)]
    half = _MOST_ROWS // 2
    room = [max(half, _MOST_ROWS - len(other)) for other in reversed(kinds)]
    return np.concatenate([kind[:most] for kind, most in zip(kinds, room, strict=True)])
