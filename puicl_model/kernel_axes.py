"""A table along the axes of a kernel, as further tables that the network reads in a blend.

Rows that are alike lie together along the leading principal components of a kernel matrix
(Schoelkopf, Smola and Mueller, 1998). Of two kernels: how often trees, taught what the network
says, bring two rows to one leaf (Scornet, 2016), and a Gaussian one of the columns' normal scores.
"""

from typing import Self

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist
from sklearn.ensemble import ExtraTreesRegressor

from puicl_model.neighbors import normal_scores
from puicl_model.trees import Forest, from_origin, origin_of

# Rows of which a kernel matrix is made, and how many of its axes the network reads: at most so
# many columns had most of its training tasks, and further axes are mostly noise.
MOST_ROWS = 2_000
_MOST_AXES = 10
# Axes with a smaller share of the variance hold rounding.
_LEAST_SHARE = 1e-9
_TREES = 200
_LEAF = 5
# Labelled rows are taught as the unlabelled row is that so many rank below: told 1, trees would
# split by who is labelled.
_LABELED_AS = 0.9
# New rows whose kernel rows are held at once.
_ROWS_AT_ONCE = 1024


class ForestAxes:
    """Leading kernel components of a table by extremely randomised trees.

    The kernel of two rows is the share of trees in which they share a leaf. `forest` answers with a
    row's components; as flat arrays, so that it can be saved without pickling.
    """

    def __init__(self, forest: Forest):
        self.forest = forest

    @classmethod
    def of(
        cls, X: np.ndarray, labeled: np.ndarray, answers: np.ndarray, rng: np.random.Generator
    ) -> Self | None:
        """Of a table X [n, w] of any scale, by trees that learn `answers`, P(positive) [n].

        labeled: boolean [n]. None where the trees find all rows alike.
        """
        answers = answers.copy()
        answers[labeled] = np.quantile(answers[~labeled], _LABELED_AS)
        origin = origin_of(X)
        trees = ExtraTreesRegressor(
            _TREES,
            min_samples_leaf=_LEAF,
            max_features="sqrt",
            random_state=int(rng.integers(2**31)),
        ).fit(from_origin(X, origin), answers)
        forest = Forest.of([trees], origin)
        n, n_nodes = len(X), len(forest.feature)
        leaves = np.concatenate(list(forest.leaves(X)))
        entries = (np.ones(len(leaves)), (np.tile(np.arange(n), _TREES), leaves))
        in_leaf = csr_array(entries, shape=(n, n_nodes))
        components = _components((in_leaf @ in_leaf.T).toarray() / _TREES, X.shape[1])
        if components is None:
            return None
        forest.share = in_leaf.T @ components
        return cls(forest)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """[m, w] to [m, k], k at most 10; each row by itself."""
        return self.forest(X)


class GaussianAxes:
    """Leading kernel components of a table by distances in the columns' normal scores.

    The kernel of two rows is e to minus their squared distance in units of its median. As flat
    arrays: `values` [n, w], each column's values in order; `rows` [n, w], scores in units of
    `spread` [w]; `components` [n, k]; `unit`, the median.
    """

    values: np.ndarray
    spread: np.ndarray
    rows: np.ndarray
    components: np.ndarray
    unit: np.ndarray
    arrays = ("values", "spread", "rows", "components", "unit")

    def __init__(self, **arrays: np.ndarray):
        for name in self.arrays:
            setattr(self, name, arrays[name])

    @classmethod
    def of(cls, X: np.ndarray) -> Self | None:
        """Of a table X [n, w] of any scale; None where all rows are equal."""
        values = np.sort(X, axis=0)
        scores = normal_scores(values, X).astype(np.float64)
        spread = scores.std(axis=0)
        spread[spread == 0] = 1.0
        rows = scores / spread
        distances = pdist(rows, "sqeuclidean")
        if not distances.any():
            return None
        unit = np.array(np.median(distances[distances > 0]))
        self = cls(values=values, spread=spread, rows=rows, components=np.zeros((0, 0)), unit=unit)
        components = _components(self._kernel(rows), X.shape[1])
        if components is None:
            return None
        self.components = components
        return self

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """[m, w] to [m, k], k at most 10; each row by itself."""
        parts = [
            self._of_some(X[start : start + _ROWS_AT_ONCE])
            for start in range(0, max(len(X), 1), _ROWS_AT_ONCE)
        ]
        return np.concatenate(parts)

    def _of_some(self, X: np.ndarray) -> np.ndarray:
        kernel = self._kernel(normal_scores(self.values, X) / self.spread)
        total = np.zeros((len(X), self.components.shape[1]))
        # A matrix product's last digits could depend on the number of rows.
        for column, loadings in zip(kernel.T, self.components, strict=True):
            total += column[:, None] * loadings
        return total

    def _kernel(self, rows: np.ndarray) -> np.ndarray:
        """[m, n] of `rows` [m, w] with those of the table."""
        distances = np.zeros((len(rows), len(self.rows)))
        for new, known in zip(rows.T, self.rows.T, strict=True):
            distances += (new[:, None] - known) ** 2
        return np.exp(-distances / self.unit)


def _components(kernel: np.ndarray, n_columns: int) -> np.ndarray | None:
    """[n, k]: by how much a row's kernel with each of the table's n rows moves its components.

    kernel: [n, n]. As many components as the table has columns, two at least and ten at most, by
    decreasing variance; of each the largest entry is positive. None where there is none.
    """
    n = len(kernel)
    centered = kernel - kernel.mean(axis=0)
    centered -= centered.mean(axis=1)[:, None]
    most = min(_MOST_AXES, max(2, n_columns), n)
    variances, vectors = eigh((centered + centered.T) / 2, subset_by_index=[n - most, n - 1])
    kept = variances > max(_LEAST_SHARE * np.trace(centered), 1e-12 * n)
    if not kept.any():
        return None
    vectors = vectors[:, kept][:, ::-1] / np.sqrt(variances[kept][::-1])
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(np.take_along_axis(vectors, largest[None], 0) < 0, -1.0, 1.0)
