"""The table along its principal axes: what columns share, and what little tells them apart."""

from typing import Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling, shorten

# Axes with a smaller share of the variance hold rounding and copies.
_LEAST_SHARE = 1e-5
# Correlations are rounded to so many places: equal ones stay equal in any order of the rows, so
# that axes which could lie anywhere lie at one place. (And -0.0 is 0.0, whose sign LAPACK heeds.)
_PLACES = 10
# How each kind of axes scales the columns first.
_COLUMNS = {
    "principal": "standard",
    "principal_quantile": "quantile",
    "principal_uniform": "uniform",
}
PRINCIPAL = tuple(_COLUMNS)


# From here on a square of the columns is avoided. (Below, it is what earlier versions took.)
_MANY_COLUMNS = 1_000


class PrincipalAxes:
    """Columns [n, w] to at most w uncorrelated ones of variance 1, by decreasing former variance.

    Of kind "principal", axes of the standardised columns, whose tails are shortened first; of kind
    "principal_quantile" or "principal_uniform", of the columns in quantile or uniform scaling,
    where only their cells' ranks count. Fitted without labels. Where columns are nearly copies of
    each other, a class that shows only in their difference lies along an axis of its own. Of each
    axis the largest loading is positive. `most`: how many of them are kept, by default all. Of
    more columns than rows, if these are more than 1,000, there are at most as many axes as rows,
    found through a matrix of rows by rows instead of columns by columns.
    """

    def __init__(self, X: np.ndarray, kind: str = "principal", most: int | None = None):
        self.kind = kind
        self.columns = ColumnScaling(X, _COLUMNS[kind])
        z = self.columns(X).astype(np.float64)
        self.center, spread = z.mean(axis=0), z.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        z = (z - self.center) / self.spread
        axes = _axes(z)
        largest = np.abs(axes).argmax(axis=0)
        axes = axes * np.where(np.take_along_axis(axes, largest[None], 0) < 0, -1.0, 1.0)
        variances = (z @ axes).var(axis=0)
        kept = variances > _LEAST_SHARE * variances.sum()
        if not kept.any():  # all columns are constant
            kept[0], variances[0] = True, 1.0
        self.axes = (axes[:, kept] / np.sqrt(variances[kept]))[:, :most]

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return self.axes.shape[1]

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """[m, w] to [m, width] float32, or to the columns `which` of these; each row by itself."""
        axes = self.axes if which is None else self.axes[:, which]
        z = (self.columns(X).astype(np.float64) - self.center) / self.spread
        total = np.zeros((len(z), axes.shape[1]))
        # A matrix product's last digits could depend on the number of rows.
        for column, loadings in zip(z.T, axes, strict=True):
            total += column[:, None] * loadings
        return shorten(total)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        arrays = {name: getattr(self, name) for name in ("center", "spread", "axes")}
        return {"kind": self.kind, _COLUMNS[self.kind]: self.columns.state(), **arrays}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The axes whose `state` this is, with arrays or lists of their numbers."""
        self = cls.__new__(cls)
        self.kind = state["kind"]
        self.columns = ColumnScaling.from_state(state[_COLUMNS[self.kind]])
        for name in ("center", "spread", "axes"):
            setattr(self, name, np.array(state[name]))
        return self


def _axes(z: np.ndarray) -> np.ndarray:
    """Eigenvectors [w, k] of the correlations of z [n, w], by falling eigenvalue; k = min(n, w)
    where w is large, else w."""
    n, w = z.shape
    if w <= max(n, _MANY_COLUMNS):
        return np.linalg.eigh(np.round(z.T @ z / n, _PLACES) + 0.0)[1][:, ::-1]
    variances, rows = np.linalg.eigh(np.round(z @ z.T / n, _PLACES) + 0.0)
    kept = variances > _LEAST_SHARE * variances.sum()  # the others have no direction to speak of
    kept[-1] = True
    axes = z.T @ rows[:, kept][:, ::-1]
    lengths = np.linalg.norm(axes, axis=0)
    return axes / np.where(lengths > 0, lengths, 1.0)
