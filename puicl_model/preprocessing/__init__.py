"""Convert real-world tables to the numbers that the network reads."""

from puicl_model.preprocessing.principal import PRINCIPAL
from puicl_model.preprocessing.reading import NOTHING, filled, is_missing, look, read_table
from puicl_model.preprocessing.rotations import ROTATED
from puicl_model.preprocessing.scaling import (
    RECODED,
    SCALINGS,
    TURNED,
    Recoded,
    Scaling,
    fit_scaling,
    recode,
    scaling_from_state,
)
from puicl_model.preprocessing.table import TablePreprocessor

__all__ = [
    "NOTHING",
    "PRINCIPAL",
    "RECODED",
    "ROTATED",
    "SCALINGS",
    "TURNED",
    "Recoded",
    "Scaling",
    "TablePreprocessor",
    "filled",
    "fit_scaling",
    "is_missing",
    "look",
    "read_table",
    "recode",
    "scaling_from_state",
]
