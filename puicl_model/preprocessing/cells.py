"""Read the cells of a column of `plain_cells` as numbers, times, truths or words."""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

# From here on, float64 cannot represent every integer.
EXACT = 2**53
_WHOLE = re.compile(r"^\s*[+-]?\d+\s*$")
# 007 and 7 are two codes, but 7.0 and 7 are the same: readers return either, by batch.
_WHOLE_FLOAT = re.compile(r"([+-]?(?:0|[1-9]\d*))\.0*")
_FRACTION = re.compile(r"[+-]?(?:0|[1-9]\d*)\.\d+")
# Each digit must match in one way only: otherwise many zeros take quadratic time to match.
_PADDED = re.compile(r"0+((?:0|[^\D0]\d*)(?:\.\d+)?)")
_BOOLEANS = {"TRUE": "True", "true": "True", "FALSE": "False", "false": "False"}
_TIMES = (dt.time, dt.timedelta, np.timedelta64)
# 9:30, 09:30:15.25, 112:46:00; and, as Python and pandas write durations, 1 day, 2:03:04 and
# -1 days +23:30:00. Hours of three digits without seconds (100:01) may be a ratio.
_CLOCK = re.compile(
    r"\s*(?:(?P<days>-?\d+) days?,? \+?)?"
    r"(?P<hours>\d{1,2}|\d{3}(?=:\d\d:)):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?\s*"
)

# 9:30 AM, 12:05:30 p.m., 9 am. 10 pM is a concentration.
_HALF_DAY = re.compile(
    r"\s*(?P<hours>0?\d|1[0-2])(?::(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?)?\s?"
    r"(?P<half>[AP]\.?M\.?|[ap]\.?m\.?)\s*"
)


def as_numbers(column: pd.Series, offset: int = 0) -> np.ndarray:
    """Cells [n] minus `offset` as float64, NaN if missing; durations and times in seconds.

    Raises `ValueError` naming the first cell that is not a finite number.
    """
    missing = column.isna().to_numpy()
    if missing.all():  # an empty column may have any type
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
        if are_times(column):
            column = column.map(_seconds)
        numbers = pd.to_numeric(column, errors="coerce")
        numbers = numbers.to_numpy(dtype=float, na_value=np.nan)
    numbers = np.where(missing, np.nan, numbers)
    bad = ~missing & ~np.isfinite(numbers)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        what = "infinity" if np.isinf(numbers[row]) else f"{told(column.iloc[row])}, not a number"
        raise ValueError(f"row {row} holds {what}")
    return numbers


def as_words(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Cells [n] as text by `word`, of dtype object, and boolean [n] of missing cells."""
    missing = column.isna().to_numpy()
    # Not numpy's fixed-width text, where each cell takes the memory of the longest.
    words = np.full(len(column), "", dtype=object)
    words[~missing] = of_cells(column.dropna(), word, word)
    return words, missing


def of_cells(
    known: pd.Series, of_text: Callable[[str], Any], of_other: Callable[[Any], Any]
) -> list[Any]:
    """Apply `of_text` or `of_other` to each of the `known` cells, once per different text."""
    cells = known.tolist()
    said = {text: of_text(text) for text in {cell for cell in cells if isinstance(cell, str)}}
    return [said[cell] if isinstance(cell, str) else of_other(cell) for cell in cells]


def word(value: Any) -> str:
    """A category's name, whether a reader returned the cell as text, number or boolean.

    Files are read in batches: a level 2.0, 0.10 or TRUE is text in a batch with other text, else a
    float or a boolean. So whole floats are written like integers, and fractions and booleans as
    Python writes them.
    """
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    name = str(value).strip()
    if whole := _WHOLE_FLOAT.fullmatch(name):
        return whole[1]
    return repr(float(name)) if _FRACTION.fullmatch(name) else _BOOLEANS.get(name, name)


def are_numbers(column: pd.Series) -> np.ndarray:
    """Boolean [n]: cells of a numeric type, not text that reads as a number."""
    if column.dtype.kind != "O":
        return np.full(len(column), column.dtype.kind in "iuf")
    cells = column.astype(object)
    return np.array([isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells])


def padded(texts: Iterable[str]) -> dict[str, str]:
    """Map the `word` of a number to the one of `texts` that pads it with leading zeros.

    Omits numbers that are among the texts themselves (038 and 38) and numbers that several texts
    pad (0038, 038.0).
    """
    found: dict[str, list[str]] = {}
    for text in (texts := set(texts)):
        if digits := _PADDED.fullmatch(text):
            # Readers return 038.10 as 38.1.
            found.setdefault(word(digits[1]), []).append(text)
    return {
        digits: alike[0]
        for digits, alike in found.items()
        if len(alike) == 1 and digits not in texts
    }


def are_times(column: pd.Series) -> bool:
    """Whether every non-missing cell is a time of day or a duration, or text like 9:30."""
    if column.dtype.kind != "O":
        return column.dtype.kind == "m"
    return all(map(is_time, column.dropna()))


def is_time(cell: Any) -> bool:
    """Whether `cell` is a time of day or a duration, or text like 9:30 or 9:30 PM."""
    if not isinstance(cell, str):
        return isinstance(cell, _TIMES)
    return bool(_CLOCK.fullmatch(cell) or _HALF_DAY.fullmatch(cell))


def are_truths(column: pd.Series) -> bool:
    """Whether every non-missing cell is a boolean; text never is."""
    if column.dtype.kind != "O":
        return column.dtype.kind == "b"
    return all(isinstance(cell, bool | np.bool_) for cell in column.dropna())


def truths(column: pd.Series) -> pd.Series:
    """`column` with text such as "True" converted to booleans.

    Readers return a column of booleans as text if any cell is text, such as "?" for missing.
    """
    said = {"True": True, "False": False}
    cells = [said.get(word(cell), cell) if isinstance(cell, str) else cell for cell in column]
    return pd.Series(cells, column.index, dtype=object)


def huge_offset(column: pd.Series) -> int:
    """The median of a column of integers if some reach 2^53 in absolute value, else 0."""
    if column.dtype.kind not in "iuO" and not isinstance(column.dtype, pd.StringDtype):
        return 0
    known = column.dropna()
    values = pd.to_numeric(known, errors="coerce")
    if values.dtype.kind not in "iuf" or not len(values) or values.isna().any():
        return 0
    if not max(-float(values.min()), float(values.max())) >= EXACT:
        return 0
    whole = [_whole(cell) for cell in known.array]
    numbers = sorted(number for number in whole if number is not None)
    return numbers[len(numbers) // 2] if len(numbers) == len(whole) else 0


def told(cell: Any) -> str:
    """`repr` of the cell as a Python object: 20240531 rather than np.int64(20240531)."""
    return repr(cell.item() if isinstance(cell, np.generic) else cell)


def _seconds(cell: Any) -> Any:
    if isinstance(cell, dt.timedelta | np.timedelta64):
        return pd.Timedelta(cell).total_seconds()
    if isinstance(cell, str) and (found := _CLOCK.fullmatch(cell)):
        hours = int(found["days"] or 0) * 24 + int(found["hours"])
        return hours * 3600 + int(found["minutes"]) * 60 + float(found["seconds"] or 0)
    if isinstance(cell, str) and (found := _HALF_DAY.fullmatch(cell)):
        hours = int(found["hours"]) % 12 + 12 * (found["half"][0] in "Pp")
        return hours * 3600 + int(found["minutes"] or 0) * 60 + float(found["seconds"] or 0)
    if not isinstance(cell, dt.time):
        return cell
    return cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6


def _whole(cell: Any) -> int | None:
    """The integer that a cell is, or that its text reads as; else None."""
    if isinstance(cell, str):
        return int(cell) if _WHOLE.match(cell) else None
    if isinstance(cell, Decimal):  # databases return integers of many digits like this
        whole = cell.is_finite() and cell == cell.to_integral_value()
        return int(cell) if whole else None
    return int(cell) if isinstance(cell, int | np.integer) else None


def _less(cell: Any, offset: int) -> float:
    """cell - offset, computed exactly for integers; NaN if the cell is not a number."""
    whole = _whole(cell)
    if whole is not None:
        return float(whole - offset)
    return float(pd.to_numeric(cell, errors="coerce")) - offset
