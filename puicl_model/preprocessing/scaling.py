"""The scalings in which estimators of an ensemble may read a table, by name."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling
from puicl_model.preprocessing.principal import PRINCIPAL, PrincipalAxes
from puicl_model.preprocessing.rotations import ROTATED, RandomRotations

# Scalings whose output columns mix the columns of the table.
TURNED = (*PRINCIPAL, *ROTATED)
SCALINGS = ("standard", "robust", "quantile", "uniform", *TURNED)
# Prefix of a scaling's kind if unordered categories have alternative codes.
RECODED = "recoded_"


class Recoded:
    """A scaling that replaces the codes of some of the columns X [n, w] first.

    codes: for each such column, by its number, the new codes of 0, 1, ...; scaling: the scaling of
    the recoded columns.
    """

    def __init__(self, codes: Mapping[int, np.ndarray], scaling: "Scaling"):
        self.codes, self.scaling = dict(codes), scaling
        self.kind: str = RECODED + scaling.kind

    def __call__(self, X: np.ndarray, which: np.ndarray | None = None) -> np.ndarray:
        """Map X [m, w] to float32 [m, width], or only to its columns `which`."""
        codes = self.codes
        # If columns are scaled one by one, the others need no recoding.
        if which is not None and isinstance(self.scaling, ColumnScaling):
            codes = {column: codes[column] for column in which if column in codes}
        return self.scaling(recode(X, codes), which)

    @property
    def width(self) -> int:
        """Number of output columns."""
        return self.scaling.width

    def state(self) -> dict[str, Any]:
        """Plain data and arrays; see `from_state`."""
        codes = [[column, codes] for column, codes in self.codes.items()]
        return {"kind": self.kind, "codes": codes, "scaling": self.scaling.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the scaling from its `state`, with arrays or nested lists."""
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
    """Fit one of `SCALINGS` to finite columns X [n, w].

    For kinds in `ROTATED`, `rng` draws `n_rotations` rotations, whose columns are concatenated. For
    kinds in `PRINCIPAL`, at most `most_axes` axes are kept, by default all.
    """
    if kind in ROTATED:
        return RandomRotations(X, kind, n_rotations, rng or np.random.default_rng(0))
    return PrincipalAxes(X, kind, most_axes) if kind in PRINCIPAL else ColumnScaling(X, kind)


def scaling_from_state(state: dict[str, Any]) -> Scaling:
    """Restore a scaling from what its `state()` returned."""
    if state["kind"].startswith(RECODED):
        return Recoded.from_state(state)
    if state["kind"] in ROTATED:
        return RandomRotations.from_state(state)
    which = PrincipalAxes if state["kind"] in PRINCIPAL else ColumnScaling
    return which.from_state(state)


def recode(X: np.ndarray, codes: Mapping[int, np.ndarray]) -> np.ndarray:
    """A copy of X [n, w] with codes replaced as `codes` says; see `Recoded`."""
    X = X.copy()
    for column, new in codes.items():
        X[:, column] = new[X[:, column].astype(int)]
    return X
