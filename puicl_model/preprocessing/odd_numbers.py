"""Detect numbers that may be missing cells, thousands or days."""

import re

import numpy as np

from puicl_model.preprocessing.judging import MIN_ROWS_TO_JUDGE, NAMES_SHARE

# 999, -99: codes for missing cells, if they repeat and there are enough other numbers.
_NINES = re.compile("-9+|99+")
# The least 16-bit and 32-bit integer, and about the least float32: cells of rasters without data.
_LEAST_INTEGERS, _LEAST_FLOAT = (-(2.0**15), -(2.0**31)), -3.39e38
_FEW_OTHERS, _REPEATS, _NOTHING_SHARE = 10, 3, 0.02
# Least share of integers of three digits beside numbers whose points may separate thousands.
_WHOLE_SHARE = 0.05


def stands_for_nothing(values: np.ndarray, of_days: bool = False) -> float | None:
    """The least or greatest of `values` [n] if it may be a code for missing cells; else None.

    Such a code is all nines (999, -99) or the least number of a type (-32768), repeats, and lies
    farther from the other values than these from each other, or is the only negative value. Nines
    must also fill a fiftieth of the cells. of_days: the values are days, and any such day that
    is far from the others like that (9999-12-31) counts. `values` must not hold NaN.
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(values) < MIN_ROWS_TO_JUDGE or len(distinct) <= _FEW_OTHERS:
        return None
    for value, count, others in (
        (distinct[0], counts[0], distinct[1:]),
        (distinct[-1], counts[-1], distinct[:-1]),
    ):
        with np.errstate(over="ignore"):  # infinity is no farther than infinity
            apart = np.abs(others - value).min() > others[-1] - others[0]
        below = not of_days and value < 0 <= others[0]
        nines = value % 1 == 0 and _NINES.fullmatch(f"{value:.0f}")
        least = not of_days and (value in _LEAST_INTEGERS or value < _LEAST_FLOAT)
        written = of_days or nines or least
        many = count >= (_REPEATS if least else max(_REPEATS, _NOTHING_SHARE * len(values)))
        if written and many and (apart or below):
            return float(value)
    return None


def parted_by_points(values: np.ndarray) -> float | None:
    """One of `values` [n] if their points may separate thousands (999, 1.234); else None.

    In that case whole numbers are below 1,000, and fractions lie between 1 and 1,000 and have three
    decimals. Of numbers measured to three decimals, only one in a thousand would be whole. `values`
    must not hold NaN.
    """
    sizes = np.abs(values)
    if len(sizes) < MIN_ROWS_TO_JUDGE or sizes.max() >= 1000:
        return None
    whole = sizes == np.round(sizes)
    parted = sizes[~whole] * 1000
    if (whole & (sizes >= 100)).mean() < _WHOLE_SHARE or not len(parted):
        return None
    of_three = np.abs(parted - np.round(parted)) < 1e-6
    fewer_do = np.round(parted) % 10 == 0
    if parted.min() < 1000 or not of_three.all() or fewer_do.mean() > NAMES_SHARE:
        return None
    return float(values[~whole][~fewer_do][0])


def digits_of_a_day(values: np.ndarray) -> float | None:
    """One of `values` [n], without NaN, if all read as days (20240531, 31052024, 5312024)."""
    distinct = np.unique(values)
    least, most = distinct[0], distinct[-1]
    if len(distinct) <= _FEW_OTHERS or least < 1_011_800 or most > 31_122_100:
        return None
    if not np.array_equal(distinct, np.round(distinct)):
        return None
    days = distinct.astype(np.int64)
    rest, low = np.divmod(days, 100)
    first, second = np.divmod(days // 10_000, 100)
    by_year = (rest // 100, rest % 100, low)
    year = days % 10_000
    for years, months, of_month in (by_year, (year, second, first), (year, first, second)):
        written = (years >= 1800) & (years <= 2100) & (months >= 1) & (months <= 12)
        if (written & (of_month >= 1) & (of_month <= 31)).all():
            return float(least)
    return None
