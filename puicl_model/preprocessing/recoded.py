"""Scalings of tables in which categories without an order have other codes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling

if TYPE_CHECKING:
    from puicl_model.preprocessing.scaling import Scaling

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
    def from_state(cls, state: dict[str, Any], scaling: "Scaling") -> Self:
        """What has this `state`, with arrays or lists of their numbers, of the other `scaling`."""
        return cls({int(column): np.array(codes) for column, codes in state["codes"]}, scaling)


def recode(X: np.ndarray, codes: Mapping[int, np.ndarray]) -> np.ndarray:
    """A copy of X [n, w] with these columns' codes exchanged; see `Recoded`."""
    X = X.copy()
    for column, new in codes.items():
        X[:, column] = new[X[:, column].astype(int)]
    return X
