"""Which rows are labelled positives: the forms in which people write `s`."""

from typing import Any

import numpy as np
import pandas as pd

# As CSV files and people write booleans.
_WORDS = {"True": 1, "true": 1, "TRUE": 1, "False": 0, "false": 0, "FALSE": 0}


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
        words = pd.Series(array.astype(object)).replace(_WORDS)
        numbers = pd.to_numeric(words, errors="coerce").to_numpy(dtype=float)
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"s must hold numbers, booleans or text, not {array.dtype}")
    else:
        numbers = array.astype(float)
    known = np.isin(numbers, (1, 0, -1))
    strange = ~known & ~missing
    if strange.any():
        raise ValueError(
            f"s must hold 1 or True for labelled positives and 0, -1, False or nothing for "
            f"unlabelled rows, but row {int(np.flatnonzero(strange)[0])} holds "
            f"{array[strange].tolist()[0]!r}"
        )
    return known & (numbers == 1)
