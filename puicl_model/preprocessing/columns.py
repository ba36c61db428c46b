"""One column of a table to one or more columns of float64, NaN-free: numbers, categories, dates.

Each encoder reads its column once (`fit`), is a function of fit and cell from then on
(`transform`), and is plain data (`state`, `from_state`), so that it can be saved as JSON.
"""

import datetime as dt
import re
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from puicl_model.preprocessing.reading import is_missing

# From here on float64 skips whole numbers.
_EXACT = 2**53
_WHOLE = re.compile(r"^\s*[+-]?\d+\s*$")
_ISO_DATE = re.compile(r"^\s*\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ]\d{1,2}:\d{2}.*)?\s*$")
_DAY = 86_400.0
_TIMES = (dt.time, dt.timedelta, np.timedelta64)


class Column:
    """What every encoder is: its outputs' names' endings, and its state as plain data."""

    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]

    @property
    def endings(self) -> list[str]:
        """One an output column; added to the column's name."""
        raise NotImplementedError

    def transform(self, column: pd.Series) -> np.ndarray:
        """[n] cells to [n, len(endings)] finite float64.

        Raises `ValueError` for cells that are not of the fitted kind.
        """
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Plain data that `from_state` makes the same encoder from."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The encoder whose `state` this is."""
        encoder = cls.__new__(cls)
        for name in cls.fields:
            setattr(encoder, name, state[name])
        return encoder


class NumberColumn(Column):
    """Numbers, booleans, durations and times of day (in seconds); missing: the median.

    `indicator` adds a column that is 1 where the cell is missing. Whole numbers beyond 2^53 are
    taken relative to `offset` before they become floats, so that their differences stay exact.
    """

    kind = "number"
    fields = ("offset", "fill", "indicator")

    def __init__(self, column: pd.Series, indicator_share: float):
        self.offset = huge_offset(column)
        values = as_numbers(column, self.offset)
        known = values[~np.isnan(values)]
        # The middle cell rather than the middle of two: it is a value of the column, and huge
        # values do not overflow.
        self.fill = float(np.sort(known)[(len(known) - 1) // 2])
        share = 1 - len(known) / len(values)
        self.indicator = bool(indicator_share <= share < 1)

    @property
    def endings(self):
        """See `Column`."""
        return ["", " is missing"] if self.indicator else [""]

    def transform(self, column):
        """See `Column`."""
        values = as_numbers(column, self.offset)
        missing = np.isnan(values)
        filled = np.where(missing, self.fill, values)
        return np.column_stack([filled, missing]) if self.indicator else filled[:, None]


class DateColumn(Column):
    """Dates and times: days since 1970, and weekday, month and hour where they vary enough."""

    kind = "date"
    fields = ("fill", "parts", "indicator")

    def __init__(self, column: pd.Series, indicator_share: float):
        seconds = as_seconds(column)
        known = np.sort(seconds[~np.isnan(seconds)])
        self.fill = float(known[(len(known) - 1) // 2])
        self.indicator = bool(indicator_share <= 1 - len(known) / len(seconds) < 1)
        days = np.floor(known / _DAY)
        long_enough = {
            "weekday": days[-1] - days[0] >= 14,
            "month": days[-1] - days[0] >= 730,
            "hour": True,
        }
        self.parts = [
            part
            for part, values in _calendar(known).items()
            if long_enough[part] and len(np.unique(values)) > 1
        ]

    @property
    def endings(self):
        """See `Column`."""
        return ["", *(f" {part}" for part in self.parts), *[" is missing"] * self.indicator]

    def transform(self, column):
        """See `Column`."""
        seconds = as_seconds(column)
        missing = np.isnan(seconds)
        seconds = np.where(missing, self.fill, seconds)
        calendar = _calendar(seconds)
        outputs = [seconds / _DAY, *(calendar[part] for part in self.parts)]
        return np.column_stack(outputs + [missing] * self.indicator).astype(float)


class CategoryColumn(Column):
    """Text and other categories, as one column a level or as codes.

    Levels stand in the order of an ordered pandas categorical, else numbers by their value and then
    the other words by the alphabet. Rare levels are taken together; a level that was not there at
    the fit counts as rare, as a missing cell does where none was missing. Two levels make one
    column of 0 and 1. Up to `one_hot_levels` make a column each, more make one column of codes.
    """

    kind = "category"
    fields = ("levels", "rare", "missing", "one_hot", "fill")

    def __init__(self, column: pd.Series, one_hot_levels: int, rare_below: int):
        words, missing = as_words(column)
        known = words[~missing]
        levels, counts = np.unique(known, return_counts=True)
        order = {level: code for code, level in enumerate(_ordered_levels(column))}
        common = [
            str(level)
            for level, count in zip(levels, counts, strict=True)
            if count >= rare_below or len(levels) <= 2
        ]
        self.levels = sorted(
            common, key=lambda level: (order.get(level, len(order)), *_by_value(level))
        )
        self.rare = len(common) < len(levels)
        self.missing = bool(missing.any())
        self.one_hot = self._n_codes <= one_hot_levels
        codes = self._codes(words, missing)
        self.fill = float(np.sort(codes)[(len(codes) - 1) // 2])

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

    def transform(self, column):
        """See `Column`."""
        codes = self._codes(*as_words(column))
        if not self.one_hot or self._n_codes <= 2:
            return np.where(np.isnan(codes), self.fill, codes)[:, None]
        return (codes[:, None] == np.arange(self._n_codes)).astype(float)

    def _codes(self, words: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """[n]: 0, 1, ... for the levels, then rare, then missing; NaN where none applies."""
        rare = len(self.levels) if self.rare else np.nan
        code_of = {level: float(code) for code, level in enumerate(self.levels)}
        distinct, inverse = np.unique(words, return_inverse=True)
        codes = np.array([code_of.get(str(word), rare) for word in distinct], dtype=float)[inverse]
        return np.where(missing, len(self.levels) + self.rare if self.missing else rare, codes)


def as_numbers(column: pd.Series, offset: int = 0) -> np.ndarray:
    """[n] cells as float64, NaN where missing, less `offset`; durations and times in seconds.

    Raises `ValueError` naming the first cell that is no finite number.
    """
    missing = is_missing(column)
    if missing.all():  # of whatever type: an empty column of a frame may have any
        return np.full(len(column), np.nan)
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(object)
    if column.dtype.kind == "m":
        numbers = column.dt.total_seconds().to_numpy(dtype=float)
    elif column.dtype.kind == "M":
        raise ValueError(f"row 0 holds the date {column.iloc[0]}, not a number")
    elif offset:
        cells = zip(column.array, missing, strict=True)
        numbers = np.array([np.nan if gone else _less(cell, offset) for cell, gone in cells])
    else:
        if are_times(column, missing):
            column = column.map(_seconds)
        numbers = pd.to_numeric(column, errors="coerce")
        numbers = numbers.to_numpy(dtype=float, na_value=np.nan)
    numbers = np.where(missing, np.nan, numbers)
    bad = ~missing & ~np.isfinite(numbers)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        what = "infinity" if np.isinf(numbers[row]) else f"{column.iloc[row]!r}, not a number"
        raise ValueError(f"row {row} holds {what}")
    return numbers


def as_seconds(column: pd.Series) -> np.ndarray:
    """[n] dates as seconds since 1970 (UTC where they have a zone), NaN where missing.

    Raises `ValueError` naming the first cell that is neither a date nor text like 2024-05-31: what
    pandas reads into other cells (3.4.2024, 2024, "today") is a guess.
    """
    given, missing = column, is_missing(column)
    if column.dtype.kind != "M":
        column = column.astype(object)
        readable = [not gone and _is_date(v) for v, gone in zip(column, missing, strict=True)]
        column = column.where(np.array(readable), None)
    dates = pd.to_datetime(column, errors="coerce", utc=True, format="mixed")
    dates = dates.astype("datetime64[us, UTC]")
    gone = dates.isna().to_numpy()
    if (gone & ~missing).any():
        row = int(np.flatnonzero(gone & ~missing)[0])
        raise ValueError(
            f"row {row} holds {given.iloc[row]!r}, not a date; text must be like 2024-05-31"
        )
    return np.where(gone, np.nan, dates.astype("int64").to_numpy() / 1e6)


def are_times(column: pd.Series, missing: np.ndarray) -> bool:
    """Whether every cell that is there is a time of day or a duration."""
    return column.dtype == object and all(isinstance(v, _TIMES) for v in column[~missing])


def as_words(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """[n] cells as text, and where they are missing; whole floats read like whole numbers."""
    missing = is_missing(column)
    words = [
        "" if gone else _word(value)
        for value, gone in zip(column.astype(object), missing, strict=True)
    ]
    return np.array(words, dtype=str), missing


def looks_like_dates(column: pd.Series) -> bool:
    """Whether every cell that is there is a date, or text like 2024-05-31 (with a time)."""
    if column.dtype.kind == "M":
        return True
    known = column[~is_missing(column)]
    if not len(known) or column.dtype.kind in "biufcm":
        return False
    if not all(map(_is_date, known)):
        return False
    if not any(isinstance(value, str) for value in known):
        return True
    try:
        as_seconds(column)
    except ValueError:
        return False
    return True


def _word(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _is_date(cell: Any) -> bool:
    """Whether it is a date or a moment, or text that begins like 2024-05-31."""
    if isinstance(cell, str):
        return _ISO_DATE.match(cell) is not None
    return hasattr(cell, "toordinal") or isinstance(cell, np.datetime64)


def _by_value(level: str) -> tuple[float, str]:
    """What sorts numbers by their value, then other words by the alphabet."""
    try:
        value = float(level)
    except ValueError:
        value = np.inf
    return (np.inf if np.isnan(value) else value), level


def _seconds(cell: Any) -> Any:
    if isinstance(cell, dt.timedelta | np.timedelta64):
        return pd.Timedelta(cell).total_seconds()
    if not isinstance(cell, dt.time):
        return cell
    return cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6


def huge_offset(column: pd.Series) -> int:
    """A whole number amid a column of whole numbers beyond 2^53, else 0."""
    if column.dtype.kind not in "iuO" and not isinstance(column.dtype, pd.StringDtype):
        return 0
    known = column[~is_missing(column)]
    values = pd.to_numeric(known, errors="coerce")
    if values.dtype.kind not in "iuf" or not len(values):
        return 0
    if not max(-float(values.min()), float(values.max())) >= _EXACT:
        return 0
    whole = [_whole(cell) for cell in known.array]
    if None in whole:
        return 0
    return sorted(whole)[len(whole) // 2]


def _whole(cell: Any) -> int | None:
    """The whole number that a cell is, or says; None where it is none."""
    if isinstance(cell, str):
        return int(cell) if _WHOLE.match(cell) else None
    return int(cell) if isinstance(cell, int | np.integer) else None


def _less(cell: Any, offset: int) -> float:
    """cell - offset, exact where the cell is a whole number; NaN where it is no number."""
    whole = _whole(cell)
    if whole is not None:
        return float(whole - offset)
    return float(pd.to_numeric(cell, errors="coerce")) - offset


def _calendar(seconds: np.ndarray) -> dict[str, np.ndarray]:
    dates = pd.DatetimeIndex((seconds * 1e6).astype("datetime64[us]"))
    return {
        "weekday": dates.day_of_week.to_numpy(),
        "month": dates.month.to_numpy(),
        "hour": dates.hour.to_numpy(),
    }


def _ordered_levels(column: pd.Series) -> list[str]:
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return [_word(level) for level in column.dtype.categories]
    return []


ENCODERS: dict[str, type[Column]] = {
    encoder.kind: encoder for encoder in (NumberColumn, DateColumn, CategoryColumn)
}
