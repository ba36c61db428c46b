"""Cross-fitted extremely randomised trees as a student of the network (`puicl_model.blend`)."""

from typing import Self

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.model_selection import StratifiedKFold

_FOLDS = 5
_TREES = 100
_LEAF = 3
# A column whose range spans fewer float32 steps than this is centred at its median.
_STEPS = 4096
# Most rows to learn from: more rows improve the trees little and make them large.
_MOST_ROWS = 20_000


class Forest:
    """Fitted trees as flat arrays, so that they can be saved without pickling.

    The nodes of all trees are numbered together. Node i leads to `left[i]` if the row's column
    `feature[i]` is at most `threshold[i]`, else to `right[i]`. A leaf has a negative `feature` and
    predicts `share[i]`. `origin` [w] is subtracted from the columns first; `roots` are the numbers
    of the trees' roots.
    """

    roots: np.ndarray
    left: np.ndarray
    right: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    share: np.ndarray
    origin: np.ndarray
    arrays = ("roots", "left", "right", "feature", "threshold", "share", "origin")

    def __init__(self, **arrays: np.ndarray):
        for name in self.arrays:
            setattr(self, name, arrays[name])

    def has_circles(self) -> bool:
        """Whether an inner node leads to itself or a lower number, which no grown tree does."""
        onwards = np.minimum(self.left, self.right) > np.arange(len(self.feature))
        return not onwards[self.feature >= 0].all()

    @classmethod
    def of(cls, forests: list[ExtraTreesRegressor], origin: np.ndarray) -> Self:
        """Join all trees of all `forests`, which were fitted to columns minus `origin` [w]."""
        trees = [tree.tree_ for forest in forests for tree in forest.estimators_]
        sizes = [tree.node_count for tree in trees]
        roots = np.cumsum([0, *sizes[:-1]])

        def joined(name: str, start: np.ndarray | None = None) -> np.ndarray:
            parts = [getattr(tree, name) for tree in trees]
            if start is not None:
                parts = [part + root for part, root in zip(parts, start, strict=True)]
            return np.concatenate(parts)

        return cls(
            roots=roots,
            left=joined("children_left", roots).astype(np.int32),
            right=joined("children_right", roots).astype(np.int32),
            feature=joined("feature").astype(np.int32),
            threshold=joined("threshold"),
            share=np.concatenate([tree.value[:, 0, 0] for tree in trees]),
            origin=origin,
        )

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Mean prediction [m] of the trees for rows X [m, w]."""
        X = _small(X, self.origin)
        total, rows = np.zeros(len(X)), np.arange(len(X))
        for root in self.roots:
            node = np.full(len(X), root)
            moving = rows if self.feature[root] >= 0 else rows[:0]
            while len(moving):
                at = node[moving]
                below = X[moving, self.feature[at]] <= self.threshold[at]
                node[moving] = np.where(below, self.left[at], self.right[at])
                moving = moving[self.feature[node[moving]] >= 0]
            total += self.share[node]
        return total / len(self.roots)


def cross_fitted(
    X: np.ndarray, labeled: np.ndarray, answers: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, Forest]:
    """Fit trees; return their out-of-fold predictions [n] and the forest of all trees.

    X: [n, w] of any scale; labeled: boolean [n], at least 2 of each kind; answers: [n], the
    targets. At most `_MOST_ROWS` rows are learnt from; all other rows are scored by all trees.
    Raises `ValueError` for fewer than 2 rows of a kind.
    """
    kept = np.sort(thin(labeled, rng))
    least = check_enough(labeled)
    folds = StratifiedKFold(min(_FOLDS, least), shuffle=True, random_state=int(rng.integers(2**31)))
    forests, scores = [], np.full(len(X), np.nan)
    origin = _origin(X)
    for rest, part in folds.split(X[kept], labeled[kept]):
        forest = ExtraTreesRegressor(
            _TREES,
            min_samples_leaf=_LEAF,
            max_features="sqrt",
            random_state=int(rng.integers(2**31)),
        ).fit(_small(X[kept[rest]], origin), answers[kept[rest]])
        scores[kept[part]] = forest.predict(_small(X[kept[part]], origin))
        forests.append(forest)
    together = Forest.of(forests, origin)
    others = np.flatnonzero(np.isnan(scores))
    scores[others] = together(X[others])
    return scores, together


def check_enough(labeled: np.ndarray) -> int:
    """Number of rows of the smaller kind; raises `ValueError` for fewer than the trees need."""
    least = int(min(labeled.sum(), (~labeled).sum()))
    if least < 2:
        raise ValueError("blend='trees' needs two labelled and two unlabelled rows")
    return least


def _origin(X: np.ndarray) -> np.ndarray:
    """Origins [w] of the columns of X [n, w]: 0, or the median if float32 would merge values.

    For example, times of one morning in days since 1970 lie within a few float32 steps.
    """
    with np.errstate(over="ignore"):
        steps = np.ptp(X, axis=0) / np.spacing(np.abs(X).max(axis=0).clip(1e-30, 1e30), dtype="f4")
    return np.where((steps > 0) & (steps < _STEPS), np.median(X, axis=0), 0.0)


def _small(X: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """X minus `origin`, clipped to the range of float32, which the trees require."""
    return np.clip(X - origin, -1e30, 1e30).astype(np.float32)


def thin(labeled: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw at most `_MOST_ROWS` positions, half of each kind, or more if the other has fewer."""
    kinds = [rng.permutation(np.flatnonzero(kind)) for kind in (labeled, ~labeled)]
    half = _MOST_ROWS // 2
    room = [max(half, _MOST_ROWS - len(other)) for other in reversed(kinds)]
    return np.concatenate([kind[:most] for kind, most in zip(kinds, room, strict=True)])
