"""Encoders of a table's column as one or more float64 columns without NaN.

There is one for numbers, one for categories and one for dates. An encoder is fitted to its column
on construction. From then on it encodes each cell independently (`transform`). Its `state` is plain
data, so that it can be saved as JSON.
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
    as_words,
    huge_offset,
    is_time,
    padded,
    truths,
    word,
)
from puicl_model.preprocessing.dates import as_seconds, have_zones, zone_of
from puicl_model.preprocessing.find_spelling import spelling_from
from puicl_model.preprocessing.judging import MIN_ROWS_TO_JUDGE
from puicl_model.preprocessing.levels import have_order, in_order
from puicl_model.preprocessing.odd_numbers import (
    digits_of_a_day,
    parted_by_points,
    stands_for_nothing,
)
from puicl_model.preprocessing.placeholders import without
from puicl_model.preprocessing.reading import trimmed
from puicl_model.preprocessing.spelling import Spelling

_DAY = 86_400.0


class Column:
    """Base class of the encoders. `fields` names the attributes that make up the state."""

    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    # How to read cells in a notation that Python does not read itself; None for categories.
    spelling: Spelling | None = None

    @property
    def endings(self) -> list[str]:
        """Suffix of the column's name for each output column."""
        raise NotImplementedError

    def transform(self, column: pd.Series) -> np.ndarray:
        """Encode cells [n] as finite float64 [n, len(endings)].

        Raises `ValueError` for cells that are not of the fitted kind.
        """
        column = without(column)
        return self.encode(column if self.spelling is None else self.spelling.read(column))

    def encode(self, column: pd.Series) -> np.ndarray:
        """`transform` of a column that is already without placeholders and read by `spelling`."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Plain data from which `from_state` restores the encoder."""
        said = {} if self.spelling is None else {"spelling": self.spelling.state()}
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}, **said}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the encoder from its `state`."""
        encoder = cls.__new__(cls)
        # Fields that files of older versions lack are defined in the class.
        state = {name: getattr(cls, name) for name in cls.fields if hasattr(cls, name)} | state
        for name in cls.fields:
            setattr(encoder, name, state[name])
        encoder.spelling = spelling_from(state.get("spelling"))
        return encoder


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


class DateColumn(Column):
    """Dates and times: days since 1970, and weekday, month and hour if they vary enough.

    Weekday, month and hour are local to the `zone` of the fit's dates, or UTC without one; dates
    that stand for months have no weekday. Days are counted in UTC, so that all hours have the same
    length. `zoned`: whether the dates have a zone or an offset; None if only some have. With a
    `spelling`, the constructor takes the column that it has read.
    """

    kind = "date"
    fields = ("fill", "parts", "indicator", "zone", "zoned")
    zone: str | None = None  # older versions only knew UTC
    zoned: bool | None = None  # older versions did not record it
    # A date that may stand for missing, in days since 1970; only set by a fit.
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

    def encode(self, column):
        """See `Column`."""
        seconds = as_seconds(column)
        missing = np.isnan(seconds)
        seconds = np.where(missing, self.fill, seconds)
        calendar = _calendar(seconds, self.zone)
        outputs = [seconds / _DAY, *(calendar[part] for part in self.parts)]
        return np.column_stack(outputs + [missing] * self.indicator).astype(float)

    def other_clock(self, column: pd.Series) -> bool:
        """Whether a date has a time zone although none of the fit's had one, or vice versa."""
        return self.zoned is not None and (not self.zoned) in have_zones(without(column))


class CategoryColumn(Column):
    """Text and other categories, as one column per level or as one column of codes.

    Levels follow the order of an ordered pandas categorical, else their meaning (`in_order`). Rare
    levels are merged into one, and missing cells form a level. Two levels make one column of 0 and
    1; up to `one_hot_levels` make a column each; more make one column of codes.

    In new rows, unknown levels count as rare, and so do missing cells if the fit had none. If the
    fit had no rare levels, such cells are encoded neutrally: 0.5 for two levels, the median code
    (which `codes_by_count` recodes like any other), or 0 in each of several columns. A number
    stands for the level that pads it with zeros, if there is only one (`padded`): readers return
    038 as 38 in a batch without other text.
    """

    kind = "category"
    fields = ("levels", "rare", "missing", "one_hot", "fill", "zeros")
    zeros: dict[str, str] | None = None  # older versions took 38 and 038 for two levels
    # For each code, its replacement by decreasing frequency of levels, if these have no order; only
    # set by a fit.
    by_count: np.ndarray | None = None
    # Share of non-missing cells in rare levels, 0 for few cells; only set by a fit.
    rare_share: float = 0.0
    # Whether at least half of the rare levels are numbers; only set by a fit.
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
        # Numbers need no mapping to rare levels, since they count as rare themselves.
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
        encoder = super().from_state(state)
        # Older versions distinguished 0.10 and 0.1, which `as_words` no longer does, and kept
        # invisible characters around the levels of a categorical, which are no longer read.
        encoder.levels = [word(trimmed(level)) for level in encoder.levels]
        return encoder

    def transform(self, column):
        """See `Column`. Placeholders are kept: in a category they may be levels."""
        return self.encode(column)

    def encode(self, column):
        """See `Column`."""
        words, missing = as_words(column)
        codes = self._codes(self._with_zeros(words, column), missing)
        if not self.one_hot or self._n_codes <= 2:
            return np.where(np.isnan(codes), self.fill, codes)[:, None]
        return (codes[:, None] == np.arange(self._n_codes)).astype(float)

    def unknown(self, column: pd.Series) -> list[str]:
        """Levels of `column` that the fit has not seen; empty if they count as rare."""
        if self.rare:
            return []
        words, missing = as_words(column)
        words = self._with_zeros(words, column)
        return sorted(set(words[~missing].tolist()) - set(self.levels))

    def _with_zeros(self, words: np.ndarray, column: pd.Series) -> np.ndarray:
        """The `words` [n] of `column`, with numbers padded with zeros as in the fit's text."""
        if not self.zeros:
            return words
        cells = zip(words, are_numbers(column), strict=True)
        found = [self.zeros.get(said, said) if number else said for said, number in cells]
        return np.array(found, dtype=object)

    def _codes(self, words: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Codes [n]: 0, 1, ... for the levels, then rare, then missing; NaN if none applies."""
        rare = len(self.levels) if self.rare else np.nan
        code_of = {level: code for code, level in enumerate(self.levels)}
        codes = np.array([code_of.get(word, rare) for word in words.tolist()], dtype=float)
        return np.where(missing, len(self.levels) + self.rare if self.missing else rare, codes)


def _clock(seconds: np.ndarray, zone: str | None) -> pd.DatetimeIndex:
    dates = pd.DatetimeIndex((seconds * 1e6).astype("datetime64[us]"))
    return dates.tz_localize("UTC").tz_convert(zone) if zone else dates


def _are_months(seconds: np.ndarray, zone: str | None) -> bool:
    """Whether dates stand for months, quarters or years: all on the same day of the month or last.

    Their weekdays are meaningless, since nothing happened on that day.
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
