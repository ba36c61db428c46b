"""What a column holds, judged by its cells: numbers, slips among them, names, row numbers."""

import re
from typing import Any

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import (
    EXACT,
    are_times,
    are_truths,
    as_numbers,
    huge_offset,
    no_dates,
)
from puicl_model.preprocessing.misspelled import BOUND, MANY_LEVELS
from puicl_model.preprocessing.placeholders import is_placeholder

# A text column of more levels than this share of its rows names rows rather than groups.
NAMES_SHARE = 0.5
MIN_ROWS_TO_JUDGE = 20
# Text in less than this share of a column of many different numbers is a slip.
_SLIPS_SHARE = 0.2
# So is a word or two in up to half of one: "-" or "unknown" where nothing was measured.
_MARKS_SHARE, _MARKS = 0.5, 2
# But V57, E819.2 and K35 among numbers are codes of one list, and so is 0042T beside three such;
# by itself, 180H may be a number that a laboratory has marked as high.
_CODE = re.compile(r"(?P<first>[A-Z]{1,2})?\d[\d.]*[A-Z]?")
_LEAST_CODES = 3
# What pandas and Parquet call an index that was saved with the rows.
_INDEX = re.compile(r"|Unnamed: \d+(\.\d+)*|level_\d+|__index_level_\d+__|index", re.IGNORECASE)
_PADDED = re.compile(r"0\d+")
# Names of columns of identifiers: id, patient_id, "Case No", customerNr, mrn.
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|mrn|ssn|key|nr|no|num|number))|.*[a-z](Id|ID|Nr|No|Key)"
)


def read_numbers(column: pd.Series) -> pd.Series | None:
    """`column` as numbers, where every cell that is there is one, or text that is one; else None.

    Times, durations and booleans stay what they are, and whole numbers that a float might round.
    Raises `ValueError` for infinite numbers.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    if column.dtype.kind in "biufm" or are_times(column):
        return column
    numbers = pd.to_numeric(column.dropna(), errors="coerce")
    if numbers.dtype.kind not in "biuf" or numbers.isna().any():
        return None
    if are_truths(column) or numbers.abs().max() >= EXACT:
        as_numbers(column)  # tells infinite cells
        return column
    return numbers.reindex(column.index)


def are_many(distinct: int, known: int) -> bool:
    """Whether so many different ones of so many cells are more than a category's levels."""
    return distinct > MANY_LEVELS or distinct > NAMES_SHARE * known


def _is_a_mark(known: pd.Series, bad: np.ndarray) -> bool:
    """Whether all `bad` cells are one or two words for nothing, beside more of many numbers."""
    if not 0 < bad.mean() < _MARKS_SHARE:
        return False
    return known[bad].nunique() <= _MARKS and known[~bad].nunique() > MANY_LEVELS


def _are_codes(words: pd.Series) -> bool:
    """Whether all `words` are codes, at least three different ones with a letter first."""
    found = [_CODE.fullmatch(str(word)) for word in words.unique()]
    return all(found) and sum(code["first"] is not None for code in found if code) >= _LEAST_CODES


def refuse_slips(name: str, column: pd.Series, distinct: int) -> str:
    """Raise `ValueError` for a column of many different numbers, or dates, with slips in it.

    Returns one of the words among numbers that repeat where all words are codes, else nothing.
    """
    known = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype) or not are_many(distinct, len(known)):
        return ""
    for bad, kind in (
        (pd.to_numeric(known, errors="coerce").isna().to_numpy(), "number"),
        (no_dates(known), "date"),
    ):
        few = bad.mean() < _SLIPS_SHARE
        if not (few and bad.any()) and not _is_a_mark(known, bad):
            continue
        # A placeholder would be none without the word beside it.
        row = int(min(known.index[bad], key=lambda row: (_is_placeholder(column[row]), row)))
        # Codes of one list occur again and again; what does not is measured. No date is a code.
        groups = distinct <= NAMES_SHARE * len(known)
        if kind == "number" and groups and _are_codes(known[bad]):
            return str(column[row])
        mend = "correct or empty the cell"
        if kind == "number" and (bound := BOUND.fullmatch(str(column[row]))):
            mend = f"write bounds as numbers ({bound['number']}, or half of it)"
        others = "nearly all others" if few else "most others"
        if kind == "number" and _CODE.fullmatch(str(column[row]).upper()):
            mend += ", leave the column out if it only names rows"
        raise ValueError(
            f"column {name}: row {row} holds {column[row]!r}, not a {kind}, as {others} are; "
            f"{mend}, or name the column in categorical_features"
        )
    return ""


def _is_placeholder(cell: Any) -> bool:
    return isinstance(cell, str) and is_placeholder(cell)


def have_zeros_in_front(column: pd.Series) -> bool:
    """Whether a cell of `column` is text of digits of which the first is 0, but 0 itself."""
    is_text = column.dtype.kind == "O"
    return is_text and any(isinstance(c, str) and _PADDED.fullmatch(c) for c in column.tolist())


def may_identify(name: str, column: pd.Series, *, padded: bool) -> bool:
    """Whether a column of numbers may name rows: whole, all distinct, and called or written so.

    padded: whether some are written with zeros in front.
    """
    known = column.dropna()
    if column.dtype.kind in "bm" or len(known) < MIN_ROWS_TO_JUDGE:
        return False
    if not (padded or _IDENTIFIER.fullmatch(name)):
        return False
    values = as_numbers(known, huge_offset(known))
    return len(np.unique(values)) == len(values) and np.array_equal(values, np.round(values))


def is_row_number(name: str, column: pd.Series) -> bool:
    """Whole numbers, all distinct, that fill their range: an index that was saved with the rows.

    In whatever form they come: as text and, in an array beside fractions, as floats; a few of them
    may be missing. Where the column has no name or that of an index, there may be gaps, as rows
    drawn from a larger table leave them.
    """
    known = column.dropna()
    if column.dtype.kind in "bm" or len(known) < MIN_ROWS_TO_JUDGE:
        return False
    if column.isna().mean() >= _SLIPS_SHARE:
        return False
    values = as_numbers(known, huge_offset(known))
    whole = np.array_equal(values, np.round(values))
    filled = values.max() <= values.min() + len(column) - 1  # without overflow
    filled |= _INDEX.fullmatch(name) is not None
    return whole and filled and len(np.unique(values)) == len(values)
