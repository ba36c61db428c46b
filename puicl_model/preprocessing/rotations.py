"""Random rotations of a table: each output column mixes many, differently in each estimator."""

from typing import Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling, shorten

# The scaling that each kind applies to the columns first.
_COLUMNS = {
    "rotated": "standard",
    "rotated_quantile": "quantile",
    "rotated_uniform": "uniform",
}
ROTATED = tuple(_COLUMNS)
# More columns than this are rotated in groups, because run time is cubic in the size of a group.
_LARGEST_GROUP = 100


class RandomRotations:
    """Rotate columns [n, w] at random, `n_rotations` times: to w * n_rotations of variance 1.

    The columns are first brought to standard ("rotated"), quantile ("rotated_quantile") or uniform
    scaling ("rotated_uniform"), then multiplied by matrices that are uniform on the orthogonal
    group, and standardised. More than 100 columns are divided into random groups of at most 100,
    which are rotated separately. Fitted without labels. A network that reads columns one by one
    finds different decision boundaries in each rotation; this is a random rotation ensemble (Blaser
    and Fryzlewicz, JMLR 2016).
    """

    def __init__(self, X: np.ndarray, kind: str, n_rotations: int, rng: np.random.Generator):
        self.kind = kind
        self.columns = ColumnScaling(X, _COLUMNS[kind])
        w = self.columns.width
        n_groups = -(-w // _LARGEST_GROUP)
        self.groups = [
            np.sort(group)
            for _ in range(n_rotations)
            for group in np.array_split(rng.permutation(w), n_groups)
        ]
        self.rotations = [_rotation(len(group), rng) for group in self.groups]
        moments = []
        for group, rotation in zip(self.groups, self.rotations, strict=True):
            z = self._mixed(X, group, rotation)
            moments.append((z.mean(axis=0), z.std(axis=0)))
        self.center, spread = (np.concatenate(each) for each in zip(*moments, strict=True))
        self.spread = np.where(spread > 0, spread, 1.0)

    @property
    def width(self) -> int:
        """Number of output columns."""
        return sum(len(group) for group in self.groups)

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Map X [m, w] to float32 [m, width], or only its columns `which`; rows are independent."""
        which = np.arange(self.width) if which is None else which
        total, start = np.empty((len(X), len(which))), 0
        for group, rotation in zip(self.groups, self.rotations, strict=True):
            stop = start + len(group)
            of_group = np.flatnonzero((which >= start) & (which < stop))
            if len(of_group):
                total[:, of_group] = self._mixed(X, group, rotation[:, which[of_group] - start])
            start = stop
        return shorten((total - self.center[which]) / self.spread[which])

    def _mixed(self, X: np.ndarray, group: np.ndarray, loadings: np.ndarray) -> np.ndarray:
        total = np.zeros((len(X), loadings.shape[1]))
        # Not a matrix product, whose last digits could depend on the number of rows.
        for column, shares in zip(self.columns(X, group).T, loadings, strict=True):
            total += column[:, None].astype(np.float64) * shares
        return total

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        rest = {name: getattr(self, name) for name in ("center", "spread", "groups", "rotations")}
        return {"kind": self.kind, "columns": self.columns.state(), **rest}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the rotations from their `state`, with arrays or nested lists."""
        self = cls.__new__(cls)
        self.kind = state["kind"]
        self.columns = ColumnScaling.from_state(state["columns"])
        self.center, self.spread = np.array(state["center"]), np.array(state["spread"])
        self.groups = [np.array(group) for group in state["groups"]]
        self.rotations = [np.array(rotation) for rotation in state["rotations"]]
        return self


def _rotation(w: int, rng: np.random.Generator) -> np.ndarray:
    """Random matrix [w, w], uniform on the orthogonal group (Stewart, SIAM J. Num. Anal. 1980)."""
    q, r = np.linalg.qr(rng.standard_normal((w, w)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)
