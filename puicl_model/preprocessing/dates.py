"""Read the cells of a column of `plain_cells` as dates, as Python and pandas understand them."""

import re
from typing import Any

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import told

_ISO_DATE = re.compile(r"^\s*\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ]\d{1,2}:\d{2}.*)?\s*$")
# Z, UTC, +02:00 or -0500 after a time
_OFFSET = re.compile(r":.*(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)\s*$", re.IGNORECASE)


def is_date(cell: Any) -> bool:
    """Whether `cell` is a date or a datetime, or text that begins like 2024-05-31."""
    if isinstance(cell, str):
        return _ISO_DATE.match(cell) is not None
    return hasattr(cell, "toordinal") or isinstance(cell, np.datetime64)


def looks_like_dates(column: pd.Series) -> bool:
    """Whether every non-missing cell is a date, or text like 2024-05-31 (possibly with a time).

    Always False for pandas categoricals, whatever their levels.
    """
    if column.dtype.kind == "M":
        return True
    if isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "biufcm":
        return False
    known = column.dropna()
    if not len(known) or not all(map(is_date, known)):
        return False
    return not any(isinstance(value, str) for value in known) or not no_dates(column).any()


def no_dates(column: pd.Series) -> np.ndarray:
    """Boolean [n]: cells that are neither missing nor a date nor text like 2024-05-31."""
    return _dates(column)[1]


def as_seconds(column: pd.Series) -> np.ndarray:
    """Dates [n] as seconds since 1970, NaN if missing; dates without a zone are taken as UTC.

    Raises `ValueError` naming the first cell that is neither a date nor text like 2024-05-31.
    Other texts that pandas accepts (3.4.2024, 2024, "today") would be guesses.
    """
    seconds, bad = _dates(column)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"row {row} holds {told(column.iloc[row])}, not a date; text must be like 2024-05-31"
        )
    return seconds


def zone_of(column: pd.Series) -> str | None:
    """Name, as pandas reads it, of the time zone of all dates of `column`; None if not just one.

    Text counts as having no zone: it holds an offset, which in most places changes with the season.
    """
    if isinstance(column.dtype, pd.DatetimeTZDtype):
        zones = {column.dtype.tz}
    elif column.dtype == object:
        zones = {getattr(cell, "tzinfo", None) for cell in column.dropna()}
    else:
        return None
    names = {None if zone is None else str(zone) for zone in zones}
    if len(names) != 1 or None in names:
        return None
    (name,) = names
    try:
        pd.Timestamp(0, tz=name)
    except (LookupError, ValueError, OSError):  # no zone's name, or that of a folder of zones
        return None
    return name


def have_zones(column: pd.Series) -> set[bool]:
    """Whether the dates of `column` have a time zone or an offset, as the set of answers.

    {True, False} if only some have; empty if there are no dates. A date without a time has none.
    """
    known = column.dropna()
    if column.dtype.kind == "M":
        return {isinstance(column.dtype, pd.DatetimeTZDtype)} if len(known) else set()
    return {
        bool(_OFFSET.search(cell))
        if isinstance(cell, str)
        else getattr(cell, "tzinfo", None) is not None
        for cell in known
    }


def _dates(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Seconds since 1970 [n], NaN if not a date, and boolean [n] of non-missing cells like that."""
    missing = column.isna().to_numpy()
    if column.dtype.kind != "M":
        column = column.astype(object)
        readable = [not gone and is_date(v) for v, gone in zip(column, missing, strict=True)]
        column = column.where(np.array(readable), None)
    dates = pd.to_datetime(column, errors="coerce", utc=True, format="mixed")
    dates = dates.astype("datetime64[us, UTC]")
    seconds = np.where(dates.isna(), np.nan, dates.astype("int64").to_numpy() / 1e6)
    if (unread := np.flatnonzero(np.isnan(seconds) & column.notna())).size:
        seconds[unread] = column.iloc[unread].map(_beyond_nanoseconds)
    return seconds, np.isnan(seconds) & ~missing


def _beyond_nanoseconds(cell: Any) -> float:
    """Seconds since 1970 of a date, NaN if there is no such day.

    Before version 3, pandas reads no column with a date such as 9999-12-31, but the date alone.
    """
    try:
        return pd.Timestamp(cell).timestamp()
    except (ValueError, OverflowError):
        return np.nan
