"""Scalings of single columns; each member of an ensemble sees the table in one of them."""

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

# Beyond so many standard deviations, distances count by their logarithm.
_KNEE = 4.0
_N_QUANTILES = 1000
# Kinds to which only the order of a column's cells counts.
BY_RANK = ("quantile", "uniform")


class ColumnScaling:
    """Columns [n, w] to columns of ordinary size, in float64; fitted without labels.

    "standard": by mean and standard deviation; "robust": by median and interquartile range (by
    the standard deviation where that is zero); both then grow by the logarithm only beyond 4, as
    4 + log(1 + |z| - 4). "quantile": to the normal distribution's quantiles; "uniform": to ranks,
    standardised, so that no tail is long. All undo a change of units and origin, the last two every
    strictly increasing change (up to interpolation).
    """

    def __init__(self, X: np.ndarray, kind: str):
        self.kind = kind
        # In units of the largest value, so that sums of huge numbers stay finite.
        largest = np.abs(X).max(axis=0)
        self.unit = np.where(largest > 0, largest, 1.0)
        X = X / self.unit
        if kind in BY_RANK:
            self.nodes, self.scores = zip(*(_scores(x, kind) for x in X.T), strict=True)
            return
        spread = X.std(axis=0)
        self.center = X.mean(axis=0)
        if kind == "robust":
            self.center = np.median(X, axis=0)
            low, high = np.quantile(X, [0.25, 0.75], axis=0)
            middle = (high - low) / 1.349  # of a normal distribution: its standard deviation
            spread = np.where(middle > 0, middle, spread)
        self.spread = np.where(spread > 0, spread, 1.0)

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """[m, w] to [m, w] float32, or to the columns `which` of these; each row by itself."""
        which = np.arange(self.width) if which is None else which
        with np.errstate(over="ignore"):  # a new row may lie anywhere
            X = np.clip(X[:, which] / self.unit[which], -1e300, 1e300)
            if self.kind in BY_RANK:
                columns = [
                    np.interp(x, self.nodes[column], self.scores[column])
                    for x, column in zip(X.T, which, strict=True)
                ]
                return np.column_stack(columns).astype(np.float32)
            z = np.clip((X - self.center[which]) / self.spread[which], -1e300, 1e300)
        return shorten(z)

    @property
    def width(self) -> int:
        """Number of columns that come out: as many as go in."""
        return len(self.unit)

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        if self.kind in BY_RANK:
            rest: dict[str, Any] = {"nodes": list(self.nodes), "scores": list(self.scores)}
        else:
            rest = {"center": self.center, "spread": self.spread}
        return {"kind": self.kind, "unit": self.unit, **rest}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The scaling whose `state` this is, with arrays or lists of their numbers."""
        self = cls.__new__(cls)
        self.kind, self.unit = state["kind"], np.array(state["unit"])
        if self.kind in BY_RANK:
            self.nodes = [np.array(x) for x in state["nodes"]]
            self.scores = [np.array(x) for x in state["scores"]]
        else:
            self.center, self.spread = np.array(state["center"]), np.array(state["spread"])
        return self


def shorten(z: np.ndarray) -> np.ndarray:
    """Standardised numbers with the tails beyond `_KNEE` made logarithmic, as float32."""
    far = np.maximum(np.abs(z) - _KNEE, 0.0)
    return (np.sign(z) * (np.minimum(np.abs(z), _KNEE) + np.log1p(far))).astype(np.float32)


def _scores(x: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Values of a column, increasing, and the score of each one's middle rank.

    "quantile": the rank's normal quantile; "uniform": the rank itself, standardised.
    """
    values, counts = np.unique(x, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(x)
    if kind == "quantile":
        scores = ndtri(ranks)
    else:
        variance = counts @ (ranks - 0.5) ** 2 / len(x)  # middle ranks are .5 on average
        scores = (ranks - 0.5) / np.sqrt(variance) if len(values) > 1 else np.zeros(1)
    if len(values) > _N_QUANTILES:
        kept = np.unique(np.linspace(0, len(values) - 1, _N_QUANTILES).round().astype(int))
        values, scores = values[kept], scores[kept]
    return values, scores
