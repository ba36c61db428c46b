"""Scalings that treat columns one by one; an estimator of an ensemble reads the table in one."""

from typing import Any, Self

import numpy as np
from scipy.special import ndtri

# Beyond this many standard deviations, distances grow logarithmically.
_KNEE = 4.0
_N_QUANTILES = 1000
# Kinds that depend only on the order of a column's cells.
BY_RANK = ("quantile", "uniform")


class ColumnScaling:
    """Scale columns [n, w] one by one to a comparable size; fitted without labels.

    "standard": by mean and standard deviation; "robust": by median and interquartile range (or the
    standard deviation if that range is zero); in both, values beyond 4 are then compressed to
    4 + log(1 + |z| - 4), with their sign. "quantile": to quantiles of the normal distribution;
    "uniform": to standardised ranks, without long tails. All are invariant to units and origin, the
    last two to any strictly increasing transformation (up to interpolation). Computed in float64.
    """

    def __init__(self, X: np.ndarray, kind: str):
        self.kind = kind
        # Divide by the largest value, so that sums of huge numbers stay finite.
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
            middle = (high - low) / 1.349  # the standard deviation of a normal distribution
            spread = np.where(middle > 0, middle, spread)
        self.spread = np.where(spread > 0, spread, 1.0)

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Scale X [m, w] to float32 [m, w], or only its columns `which`; rows are independent."""
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
        """Number of output columns, as many as there are input columns."""
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
        """Restore the scaling from its `state`, with arrays or nested lists."""
        self = cls.__new__(cls)
        self.kind, self.unit = state["kind"], np.array(state["unit"])
        if self.kind in BY_RANK:
            self.nodes = [np.array(x) for x in state["nodes"]]
            self.scores = [np.array(x) for x in state["scores"]]
        else:
            self.center, self.spread = np.array(state["center"]), np.array(state["spread"])
        return self


def shorten(z: np.ndarray) -> np.ndarray:
    """Compress the tails of standardised numbers beyond `_KNEE` logarithmically; float32."""
    far = np.maximum(np.abs(z) - _KNEE, 0.0)
    return (np.sign(z) * (np.minimum(np.abs(z), _KNEE) + np.log1p(far))).astype(np.float32)


def _scores(x: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values of a column, increasing, and their scores; at most `_N_QUANTILES` of them.

    The score is the mid-rank's normal quantile for "quantile", the standardised mid-rank for
    "uniform".
    """
    values, counts = np.unique(x, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(x)
    if kind == "quantile":
        scores = ndtri(ranks)
    else:
        variance = counts @ (ranks - 0.5) ** 2 / len(x)  # the mean of mid-ranks is .5
        scores = (ranks - 0.5) / np.sqrt(variance) if len(values) > 1 else np.zeros(1)
    if len(values) > _N_QUANTILES:
        kept = np.unique(np.linspace(0, len(values) - 1, _N_QUANTILES).round().astype(int))
        values, scores = values[kept], scores[kept]
    return values, scores
