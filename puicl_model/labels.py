"""Which rows are labelled positives: the forms in which people write `s`."""

from typing import Any

import numpy as np
import pandas as pd


def labeled_mask(s: Any) -> np.ndarray:
    """Boolean [n]: True where `s` is 1 or True, False where it is 0, -1, False or missing.

    Raises `ValueError` where `s` has another shape or another value.
    """
    array = np.asarray(s)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"s must have one entry a row, but its shape is {array.shape}")
    missing = np.asarray(pd.isna(array))
    if array.dtype.kind in "OUS":
        numbers = pd.to_numeric(pd.Series(array.astype(object)), errors="coerce").to_numpy()
    else:
        numbers = array.astype(float)
    known = np.isin(numbers, (1, 0, -1))
    strange = ~known & ~missing
    if strange.any():
        raise ValueError(
            f"s must hold 1 or True for labelled positives and 0, -1, False or nothing for "
            f"unlabelled rows, but row {int(np.flatnonzero(strange)[0])} holds "
            f"{array[strange][0]!r}"
        )
    return known & (numbers == 1)
