"""The ways in which members of an ensemble may see the same table, by name."""

from typing import Any

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling
from puicl_model.preprocessing.principal import TURNED, PrincipalAxes

SCALINGS = ("standard", "robust", "quantile", *TURNED)
Scaling = ColumnScaling | PrincipalAxes


def fit_scaling(X: np.ndarray, kind: str) -> Scaling:
    """One of `SCALINGS` fitted to finite columns X [n, w]."""
    return PrincipalAxes(X, kind) if kind in TURNED else ColumnScaling(X, kind)


def scaling_from_state(state: dict[str, Any]) -> Scaling:
    """The scaling whose `state()` this is."""
    which = PrincipalAxes if state["kind"] in TURNED else ColumnScaling
    return which.from_state(state)
