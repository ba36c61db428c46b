"""One column of a table to one or more columns of float64, NaN-free: numbers, categories, dates.

Each encoder reads its column once (`fit`), is a function of fit and cell from then on
(`transform`), and is plain data (`state`, `from_state`), so that it can be saved as JSON.
"""

from collections import Counter
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import (
    are_numbers,
    are_times,
    are_truths,
    as_numbers,
    as_seconds,
    as_words,
    have_zones,
    huge_offset,
    is_time,
    padded,
    truths,
    word,
    zone_of,
)
from puicl_model.preprocessing.judging import MIN_ROWS_TO_JUDGE
from puicl_model.preprocessing.levels import have_order, in_order
from puicl_model.preprocessing.odd_numbers import (
    digits_of_a_day,
    parted_by_points,
    stands_for_nothing,
)
from puicl_model.preprocessing.placeholders import without
from puicl_model.preprocessing.spelling import Spelling
from puicl_model.preprocessing.spellings import spelling_from

_DAY = 86_400.0


class Column:
    """What every encoder is: its outputs' names' endings, and its state as plain data."""

    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    # How cells that Python does not read by itself say what they do; never of categories.
    spelling: Spelling | None = None

    @property
    def endings(self) -> list[str]:
        """One an output column; added to the column's name."""
        raise NotImplementedError

    def transform(self, column: pd.Series) -> np.ndarray:
        """[n] cells to [n, len(endings)] finite float64.

        Raises `ValueError` for cells that are not of the fitted kind.
        """
        column = without(column)
        return self.encode(column if self.spelling is None else self.spelling.read(column))

    def encode(self, column: pd.Series) -> np.ndarray:
        """`transform` of what cells say by the `spelling`, without placeholders."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Plain data that `from_state` makes the same encoder from."""
        said = {} if self.spelling is None else {"spelling": self.spelling.state()}
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}, **said}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The encoder whose `state` this is."""
        encoder = cls.__new__(cls)
        for name in cls.fields:
            setattr(encoder, name, state[name])
        encoder.spelling = spelling_from(state.get("spelling"))
        return encoder


class NumberColumn(Column):
    """Numbers, booleans, durations and times of day (in seconds); missing: the median.

    `indicator` adds a column that is 1 where the cell is missing. Whole numbers beyond 2^53 are
    taken relative to `offset` before they become floats, so that their differences stay exact.
    Where `times`, every cell is a time or a duration, else none is; where `truths`, a boolean, for
    which new rows may have the words. With a `spelling`, the fit is given what that has
    read.
    """

    kind = "number"
    fields = ("offset", "fill", "indicator", "times", "truths")
    times: bool | None = None  # pickled ones of older versions did not ask
    truths: bool = False  # likewise
    # What may stand for nothing, one of the numbers that are days' digits, and of those whose point
    # parts thousands; only at a fit.
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
        # The middle cell rather than the middle of two: it is a value of the column, and huge
        # values do not overflow.
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

    @classmethod
    def from_state(cls, state):
        """See `Column`."""
        # Older versions did not ask.
        return super().from_state({"times": None, "truths": False, **state})

    def _refuse_other_units(self, column: pd.Series) -> None:
        """Raise `ValueError` for numbers where the fit had times, and for the reverse."""
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


class DateColumn(Column):
    """Dates and times: days since 1970, and weekday, month and hour where they vary enough.

    The latter by the clock of the `zone` that the fit's dates have, UTC where they have none;
    dates that stand for months have no weekday. The days are UTC's, so that no hour lasts longer
    than another. `zoned`: whether they have a zone or an offset; None where some have. With a
    `spelling`, the fit is given what that has read.
    """

    kind = "date"
    fields = ("fill", "parts", "indicator", "zone", "zoned")
    zone: str | None = None  # pickled ones of older versions knew UTC alone
    zoned: bool | None = None  # and did not ask
    # What may stand for no date, in days since 1970; only at a fit.
    nothing: float | None = None

    def __init__(self, column: pd.Series, indicator_share: float, spelling: Spelling | None = None):
        self.spelling = spelling
        zoned = have_zones(column)
        self.zone, self.zoned = zone_of(column), zoned.pop() if len(zoned) == 1 else None
        seconds = as_seconds(column)
        known = np.sort(seconds[~np.isnan(seconds)])
        self.fill = float(known[(len(known) - 1) // 2])
        self.indicator = bool(indicator_share <= np.isnan(seconds).mean() < 1)
        days = np.floor(known / _DAY)
        self.nothing = stands_for_nothing(days, of_days=True)
        long_enough = {
            "weekday": days[-1] - days[0] >= 14 and not _are_months(known, self.zone),
            "month": days[-1] - days[0] >= 730,
            "hour": True,
        }
        self.parts = [
            part
            for part, values in _calendar(known, self.zone).items()
            if long_enough[part] and len(np.unique(values)) > 1
        ]

    @property
    def endings(self):
        """See `Column`."""
        return ["", *(f" {part}" for part in self.parts), *[" is missing"] * self.indicator]

    @classmethod
    def from_state(cls, state):
        """See `Column`."""
        # Older versions knew UTC alone, and did not ask.
        return super().from_state({"zone": None, "zoned": None, **state})

    def encode(self, column):
        """See `Column`."""
        seconds = as_seconds(column)
        missing = np.isnan(seconds)
        seconds = np.where(missing, self.fill, seconds)
        calendar = _calendar(seconds, self.zone)
        outputs = [seconds / _DAY, *(calendar[part] for part in self.parts)]
        return np.column_stack(outputs + [missing] * self.indicator).astype(float)

    def other_clock(self, column: pd.Series) -> bool:
        """Whether a date has a time zone where none of the fit had one, or the reverse."""
        return self.zoned is not None and (not self.zoned) in have_zones(without(column))


class CategoryColumn(Column):
    """Text and other categories, as one column a level or as codes.

    Levels stand in the order of an ordered pandas categorical, else of what they say (`in_order`).
    Rare levels are taken together; a level that was not there at the fit counts as rare, as a
    missing cell does where none was missing. Two levels make one column of 0 and 1. Up to
    `one_hot_levels` make a column each, more make one column of codes. Where no level was rare,
    what was not there at the fit lies in the middle: half way between two levels, at the median
    code (with that level where codes are exchanged, too), at none of several columns. A number
    stands for the text of the fit that alone has its digits, behind zeros (`padded`): readers make
    38 of 038 in a batch without other text.
    """

    kind = "category"
    fields = ("levels", "rare", "missing", "one_hot", "fill", "zeros")
    zeros: dict[str, str] | None = None  # pickled ones of older versions took 38 for another level
    # Codes by how many rows have a level, for each code, where the levels have no order; only at a
    # fit.
    by_count: np.ndarray | None = None
    # The share of rare levels in the cells that are there; only at a fit, and 0 of few cells.
    rare_share: float = 0.0
    # Whether half of the rare levels or more are numbers; only at a fit.
    rare_numbers: bool = False

    def __init__(self, column: pd.Series, one_hot_levels: int, rare_below: int):
        words, missing = as_words(column)
        self.zeros = padded(words[~missing & ~are_numbers(column)])
        words = self._with_zeros(words, column)
        known = words[~missing]
        counts = Counter(known.tolist())
        few = len(counts) <= 2
        common = {level: n for level, n in sorted(counts.items()) if n >= rare_below or few}
        self.levels = in_order(common, column)
        # A number that stands for a rare level is as rare without it.
        self.zeros = {digits: text for digits, text in self.zeros.items() if text in common}
        self.rare = len(common) < len(counts)
        if len(known) >= MIN_ROWS_TO_JUDGE:
            self.rare_share = (len(known) - sum(common.values())) / len(known)
        if rare := [level for level in counts if level not in common]:
            numbers = pd.to_numeric(pd.Series(rare), errors="coerce").notna()
            self.rare_numbers = bool(numbers.mean() >= 0.5)
        self.missing = bool(missing.any())
        self.one_hot = self._n_codes <= one_hot_levels
        codes = self._codes(words, missing)
        middle = np.sort(codes)[(len(codes) - 1) // 2]
        self.fill = 0.5 if self._n_codes == 2 else float(middle)
        if not self.one_hot and self._n_codes > 2 and not have_order(self.levels, column):
            rows = np.bincount(codes.astype(int))[: len(self.levels)]
            frequent = np.argsort(-rows, kind="stable")
            self.by_count = np.arange(float(self._n_codes))
            self.by_count[frequent] = np.arange(len(self.levels))

    @property
    def _n_codes(self) -> int:
        return len(self.levels) + self.rare + self.missing

    @property
    def endings(self):
        """See `Column`."""
        if not self.one_hot or self._n_codes <= 2:
            return [""]
        rest = [" = (rare)"] * self.rare + [" = (missing)"] * self.missing
        return [f" = {level}" for level in self.levels] + rest

    @classmethod
    def from_state(cls, state):
        """See `Column`."""
        encoder = super().from_state({"zeros": None, **state})
        # Older versions took 0.10 and 0.1 for two levels: `as_words` tells them apart no more.
        encoder.levels = [word(level) for level in encoder.levels]
        return encoder

    def transform(self, column):
        """See `Column`. What is a placeholder among numbers may be a level."""
        return self.encode(column)

    def encode(self, column):
        """See `Column`."""
        words, missing = as_words(column)
        codes = self._codes(self._with_zeros(words, column), missing)
        if not self.one_hot or self._n_codes <= 2:
            return np.where(np.isnan(codes), self.fill, codes)[:, None]
        return (codes[:, None] == np.arange(self._n_codes)).astype(float)

    def unknown(self, column: pd.Series) -> list[str]:
        """The levels of `column` that the fit has not seen, where none of its levels was rare."""
        if self.rare:
            return []
        words, missing = as_words(column)
        words = self._with_zeros(words, column)
        return sorted(set(words[~missing].tolist()) - set(self.levels))

    def _with_zeros(self, words: np.ndarray, column: pd.Series) -> np.ndarray:
        """The `words` [n] of `column`, its numbers as the fit's text had them."""
        if not self.zeros:
            return words
        cells = zip(words, are_numbers(column), strict=True)
        found = [self.zeros.get(said, said) if number else said for said, number in cells]
        return np.array(found, dtype=object)

    def _codes(self, words: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """[n]: 0, 1, ... for the levels, then rare, then missing; NaN where none applies."""
        rare = len(self.levels) if self.rare else np.nan
        code_of = {level: code for code, level in enumerate(self.levels)}
        codes = np.array([code_of.get(word, rare) for word in words.tolist()], dtype=float)
        return np.where(missing, len(self.levels) + self.rare if self.missing else rare, codes)


def _clock(seconds: np.ndarray, zone: str | None) -> pd.DatetimeIndex:
    dates = pd.DatetimeIndex((seconds * 1e6).astype("datetime64[us]"))
    return dates.tz_localize("UTC").tz_convert(zone) if zone else dates


def _are_months(seconds: np.ndarray, zone: str | None) -> bool:
    """Whether dates stand for months, quarters or years: all on one day of the month, or its last.

    Their weekday is that of the first of May, of June, ..., which nothing happened on.
    """
    dates = _clock(seconds, zone)
    return bool(dates.day.nunique() == 1 or dates.is_month_end.all())


def _calendar(seconds: np.ndarray, zone: str | None) -> dict[str, np.ndarray]:
    dates = _clock(seconds, zone)
    return {
        "weekday": dates.day_of_week.to_numpy(),
        "month": dates.month.to_numpy(),
        "hour": dates.hour.to_numpy(),
    }


ENCODERS: dict[str, type[Column]] = {
    encoder.kind: encoder for encoder in (NumberColumn, DateColumn, CategoryColumn)
}
