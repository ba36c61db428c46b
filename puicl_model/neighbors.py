"""Nearest neighbors as a student of the network (`puicl_model.blend`)."""

import numpy as np
from scipy.special import ndtri
from sklearn.neighbors import NearestNeighbors

# Number of nearest rows; in a table with fewer than ten times as many rows, a tenth of the rows.
_NEAREST = 20


class Neighbors:
    """Mean answer of the rows nearest to a row, by distance in normal scores of the columns.

    Held as flat arrays, so that it can be saved without pickling: `values` [n, w], each column
    sorted; `rows` [n, w], the table's rows as normal scores; `answers` [n].
    """

    values: np.ndarray
    rows: np.ndarray
    answers: np.ndarray
    arrays = ("values", "rows", "answers")

    def __init__(self, **arrays: np.ndarray):
        for name in self.arrays:
            setattr(self, name, arrays[name])
        self.nearest = min(_NEAREST, max(1, len(self.rows) // 10))

    @classmethod
    def of(cls, X: np.ndarray, answers: np.ndarray) -> "Neighbors":
        """Fit to a table X [n, w] of any scale, n at least 2, with answers [n] for its rows."""
        values = np.sort(X, axis=0)
        return cls(values=values, rows=_normal_scores(values, X), answers=answers)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Mean answer [m] of the rows of the table nearest to each row of X [m, w]."""
        found = self._index(self.nearest).kneighbors(
            _normal_scores(self.values, X), return_distance=False
        )
        return self.answers[found].mean(axis=1)

    def of_others(self) -> np.ndarray:
        """Mean answer [n] of the rows nearest to each row of the table, excluding that row."""
        found = self._index(self.nearest + 1).kneighbors(self.rows, return_distance=False)
        itself = found == np.arange(len(found))[:, np.newaxis]
        # With enough duplicates, a row need not be among its own nearest rows.
        itself[~itself.any(axis=1), -1] = True
        return self.answers[found[~itself].reshape(len(found), -1)].mean(axis=1)

    def _index(self, nearest: int) -> NearestNeighbors:
        return NearestNeighbors(n_neighbors=nearest).fit(self.rows)


def _normal_scores(values: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Normal quantiles of the mid-ranks of X [m, w] among sorted columns [n, w]."""
    n = len(values)
    ranks = np.column_stack(
        [
            np.searchsorted(column, x, side="left") + np.searchsorted(column, x, side="right")
            for column, x in zip(values.T, X.T, strict=True)
        ]
    )
    return ndtri(np.clip(ranks / (2 * n), 0.5 / n, 1 - 0.5 / n)).astype(np.float32)
