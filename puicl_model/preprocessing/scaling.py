"""The ways in which members of an ensemble may see the same table, by name."""

from typing import Any

import numpy as np

from puicl_model.preprocessing.column_scaling import ColumnScaling
from puicl_model.preprocessing.principal import PRINCIPAL, PrincipalAxes
from puicl_model.preprocessing.recoded import RECODED, Recoded
from puicl_model.preprocessing.rotations import ROTATED, RandomRotations

# Those whose columns are mixtures of the table's.
TURNED = (*PRINCIPAL, *ROTATED)
SCALINGS = ("standard", "robust", "quantile", "uniform", *TURNED)
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
        return Recoded.from_state(state, scaling_from_state(state["scaling"]))
    if state["kind"] in ROTATED:
        return RandomRotations.from_state(state)
    which = PrincipalAxes if state["kind"] in PRINCIPAL else ColumnScaling
    return which.from_state(state)
