"""The encoder of columns of numbers, booleans, durations and times of day."""

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import (
    are_times,
    are_truths,
    as_numbers,
    huge_offset,
    is_time,
    truths,
)
from puicl_model.preprocessing.column import Column
from puicl_model.preprocessing.odd_numbers import (
    digits_of_a_day,
    parted_by_points,
    stands_for_nothing,
)
from puicl_model.preprocessing.spelling import Spelling


class NumberColumn(Column):
    """Numbers, booleans, durations and times of day (in seconds); missing cells get the median.

    `indicator` adds a column that is 1 if the cell is missing. Integers beyond 2^53 are taken
    relative to `offset` before conversion to float, so that their differences stay exact. If
    `times`, every cell is a time or a duration, else none is. If `truths`, every cell is a boolean;
    new rows may hold these as text. With a `spelling`, the constructor takes the column that it has
    read.
    """

    kind = "number"
    fields = ("offset", "fill", "indicator", "times", "truths")
    times: bool | None = None  # None: pickled by an older version, which did not record it
    truths: bool = False  # older versions did not record it either
    # Examples for warnings, only set by a fit: a number that may stand for missing, one that may be
    # a day without separators, one whose point may separate thousands.
    nothing: float | None = None
    day: float | None = None
    parted: float | None = None

    def __init__(self, column: pd.Series, indicator_share: float, spelling: Spelling | None = None):
        self.spelling = spelling
        self.times = are_times(column)
        self.truths = are_truths(column)
        self.offset = huge_offset(column)
        values = as_numbers(column, self.offset)
        known = values[~np.isnan(values)]
        # The lower median: it is a value of the column, and averaging huge values could overflow.
        self.fill = float(np.sort(known)[(len(known) - 1) // 2])
        self.indicator = bool(indicator_share <= np.isnan(values).mean() < 1)
        if not (self.times or self.truths or self.offset):
            self.nothing = stands_for_nothing(known)
            self.day = digits_of_a_day(known)
            self.parted = parted_by_points(known)

    @property
    def endings(self):
        """See `Column`."""
        return ["", " is missing"] if self.indicator else [""]

    def encode(self, column):
        """See `Column`."""
        self._refuse_other_units(column)
        if self.truths and column.dtype.kind not in "biuf":
            column = truths(column)
        values = as_numbers(column, self.offset)
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        return np.column_stack([filled, missing]) if self.indicator else filled[:, None]

    def _refuse_other_units(self, column: pd.Series) -> None:
        """Raise `ValueError` for numbers if the fit had times, and for times if it had none."""
        missing = column.isna().to_numpy()
        if self.times is None or missing.all() or are_times(column) == self.times:
            return
        odd = np.flatnonzero(~missing).tolist()
        if column.dtype.kind == "O":
            odd = [row for row in odd if is_time(column.iloc[row]) != self.times] or odd
        what = "a time of day or a duration" if self.times else "a number"
        cell = column.iloc[odd[0]]
        told = repr(cell) if isinstance(cell, str) else cell
        raise ValueError(f"row {odd[0]} holds {told}, not {what}")
