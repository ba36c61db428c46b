"""Principal axes of a table: what columns share, and the small differences between them."""

from typing import Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling, shorten

# Axes with a smaller share of the variance hold only rounding errors and copies of columns.
_LEAST_SHARE = 1e-5
# Correlations are rounded to this many places. Equal ones then stay equal in any order of the rows,
# so that axes that are not unique are at least reproducible. (-0.0 is made 0.0 as well, because
# LAPACK distinguishes the two.)
_PLACES = 10
# The scaling that each kind applies to the columns first.
_COLUMNS = {
    "principal": "standard",
    "principal_quantile": "quantile",
    "principal_uniform": "uniform",
}
PRINCIPAL = tuple(_COLUMNS)


# For more columns than this (and than rows), no matrix of columns by columns is formed. Narrower
# tables keep the computation of earlier versions.
_MANY_COLUMNS = 1_000


class PrincipalAxes:
    """Transform columns [n, w] to at most w uncorrelated ones of variance 1; fitted without labels.

    The axes are in order of decreasing variance before scaling to 1. Kind "principal" uses the
    standardised columns with compressed tails; "principal_quantile" and "principal_uniform" use the
    columns in quantile or uniform scaling, where only ranks count. If columns are nearly copies of
    each other, a class that shows only in their difference lies along an axis of its own. The
    loading of largest absolute value on each axis is positive. `most`: how many axes to keep, by
    default all. For more than 1,000 columns and fewer rows than columns, there are at most n axes,
    found from a matrix of rows by rows instead of columns by columns.
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
        """Number of output columns."""
        return self.axes.shape[1]

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Map X [m, w] to float32 [m, width], or only its columns `which`; rows are independent."""
        axes = self.axes if which is None else self.axes[:, which]
        z = (self.columns(X).astype(np.float64) - self.center) / self.spread
        total = np.zeros((len(z), axes.shape[1]))
        # Not a matrix product, whose last digits could depend on the number of rows.
        for column, loadings in zip(z.T, axes, strict=True):
            total += column[:, None] * loadings
        return shorten(total)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        arrays = {name: getattr(self, name) for name in ("center", "spread", "axes")}
        return {"kind": self.kind, _COLUMNS[self.kind]: self.columns.state(), **arrays}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the axes from their `state`, with arrays or nested lists."""
        self = cls.__new__(cls)
        self.kind = state["kind"]
        self.columns = ColumnScaling.from_state(state[_COLUMNS[self.kind]])
        for name in ("center", "spread", "axes"):
            setattr(self, name, np.array(state[name]))
        return self


def _axes(z: np.ndarray) -> np.ndarray:
    """Eigenvectors [w, k] of the correlations of z [n, w], by decreasing eigenvalue.

    k is w, but at most n if w is large.
    """
    n, w = z.shape
    if w <= max(n, _MANY_COLUMNS):
        return np.linalg.eigh(np.round(z.T @ z / n, _PLACES) + 0.0)[1][:, ::-1]
    variances, rows = np.linalg.eigh(np.round(z @ z.T / n, _PLACES) + 0.0)
    kept = variances > _LEAST_SHARE * variances.sum()  # directions of the others are just rounding
    kept[-1] = True
    axes = z.T @ rows[:, kept][:, ::-1]
    lengths = np.linalg.norm(axes, axis=0)
    return axes / np.where(lengths > 0, lengths, 1.0)
