"""The ways in which members of an ensemble may see the same table, by name."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling
from puicl_model.preprocessing.principal import PRINCIPAL, PrincipalAxes
from puicl_model.preprocessing.rotations import ROTATED, RandomRotations

# Those whose columns are mixtures of the table's.
TURNED = (*PRINCIPAL, *ROTATED)
SCALINGS = ("standard", "robust", "quantile", "uniform", *TURNED)
# Before the kind of a scaling of columns whose categories without an order have other codes.
RECODED = "recoded_"


class Recoded:
    """Another scaling, of the columns X [n, w] with the codes of some of them exchanged.

    codes: for each such column, by its number, the code that each of 0, 1, ... becomes.
    """

    def __init__(self, codes: Mapping[int, np.ndarray], scaling: "Scaling"):
        self.codes, self.scaling = dict(codes), scaling
        self.kind: str = RECODED + scaling.kind

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """[m, w] to float32 of as many columns as the other scaling has, or to those of `which`."""
        codes = self.codes
        if which is not None and isinstance(self.scaling, ColumnScaling):  # each by itself
            codes = {column: codes[column] for column in which if column in codes}
        return self.scaling(recode(X, codes), which)

    @property
    def width(self) -> int:
        """Number of columns that come out."""
        return self.scaling.width

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        codes = [[column, codes] for column, codes in self.codes.items()]
        return {"kind": self.kind, "codes": codes, "scaling": self.scaling.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The scaling whose `state` this is, with arrays or lists of their numbers."""
        codes = {int(column): np.array(codes) for column, codes in state["codes"]}
        return cls(codes, scaling_from_state(state["scaling"]))


Scaling = ColumnScaling | PrincipalAxes | RandomRotations | Recoded


def fit_scaling(
    X: np.ndarray,
    kind: str,
    n_rotations: int = 1,
    rng: np.random.Generator | None = None,
    most_axes: int | None = None,
) -> Scaling:
    """One of `SCALINGS` fitted to finite columns X [n, w].

    Of the kinds in `ROTATED`, `rng` draws `n_rotations`, whose columns follow one another; of those
    in `PRINCIPAL`, `most_axes` are kept, all by default.
    """
    if kind in ROTATED:
        return RandomRotations(X, kind, n_rotations, rng or np.random.default_rng(0))
    return PrincipalAxes(X, kind, most_axes) if kind in PRINCIPAL else ColumnScaling(X, kind)


def scaling_from_state(state: dict[str, Any]) -> Scaling:
    """The scaling whose `state()` this is."""
    if state["kind"].startswith(RECODED):
        return Recoded.from_state(state)
    if state["kind"] in ROTATED:
        return RandomRotations.from_state(state)
    which = PrincipalAxes if state["kind"] in PRINCIPAL else ColumnScaling
    return which.from_state(state)


def recode(X: np.ndarray, codes: Mapping[int, np.ndarray]) -> np.ndarray:
    """A copy of X [n, w] with these columns' codes exchanged; see `Recoded`."""
    X = X.copy()
    for column, new in codes.items():
        X[:, column] = new[X[:, column].astype(int)]
    return X
