"""The table rotated at random: every column a mixture of many, another one in each member."""

from typing import Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling, shorten

# How each kind of rotation scales the columns first.
_COLUMNS = {
    "rotated": "standard",
    "rotated_quantile": "quantile",
    "rotated_uniform": "uniform",
}
ROTATED = tuple(_COLUMNS)
# More columns than this are rotated in groups, or a wide table would take the cube of its width.
_LARGEST_GROUP = 100


class RandomRotations:
    """Columns [n, w] to `n_rotations` times w ones of variance 1, each w another random rotation.

    The columns are scaled first, in standard ("rotated"), quantile ("rotated_quantile") or uniform
    scaling ("rotated_uniform"), then multiplied by matrices that are uniform on the orthogonal
    group, and standardised; of more than 100 columns, random groups of at most so many are rotated
    each by itself. Fitted without labels. A network that reads columns one by one finds other
    borders in each; ensembles of such views are random rotation ensembles (Blaser and Fryzlewicz,
    JMLR 2016).
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
        """Number of columns that come out."""
        return sum(len(group) for group in self.groups)

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """[m, w] to [m, width] float32, or to the columns `which` of these; each row by itself."""
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
        # A matrix product's last digits could depend on the number of rows.
        for column, shares in zip(self.columns(X, group).T, loadings, strict=True):
            total += column[:, None].astype(np.float64) * shares
        return total

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        rest = {name: getattr(self, name) for name in ("center", "spread", "groups", "rotations")}
        return {"kind": self.kind, "columns": self.columns.state(), **rest}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The rotations whose `state` this is, with arrays or lists of their numbers."""
        self = cls.__new__(cls)
        self.kind = state["kind"]
        self.columns = ColumnScaling.from_state(state["columns"])
        self.center, self.spread = np.array(state["center"]), np.array(state["spread"])
        self.groups = [np.array(group) for group in state["groups"]]
        self.rotations = [np.array(rotation) for rotation in state["rotations"]]
        return self


def _rotation(w: int, rng: np.random.Generator) -> np.ndarray:
    """[w, w], uniform on the orthogonal group (Stewart, SIAM J. Numer. Anal. 1980)."""
    q, r = np.linalg.qr(rng.standard_normal((w, w)))
    return q * np.where(np.diag(r) < 0, -1.0, 1.0)
