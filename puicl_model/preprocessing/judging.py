"""Judge by its cells whether a column holds numbers, typing errors, identifiers or row numbers."""

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
from puicl_model.preprocessing.placeholders import is_placeholder
from puicl_model.preprocessing.unread_spellings import BOUND, MANY_LEVELS

# A text column with more levels than this share of its rows names rows rather than groups.
NAMES_SHARE = 0.5
MIN_ROWS_TO_JUDGE = 20
# Text in less than this share of a column of many different numbers counts as slips.
_SLIPS_SHARE = 0.2
# So do one or two words in less than half of the cells, such as "-" for what was not measured.
_MARKS_SHARE, _MARKS = 0.5, 2
# But codes such as V57, E819.2 and K35 among numbers belong to one list, and so does 0042T if there
# are three codes with a letter first. Without those, 180H may be a number marked as high.
_CODE = re.compile(r"(?P<first>[A-Z]{1,2})?\d[\d.]*[A-Z]?")
_LEAST_CODES = 3
# Names that pandas and Parquet give to an index that was saved as a column.
_INDEX = re.compile(r"|Unnamed: \d+(\.\d+)*|level_\d+|__index_level_\d+__|index", re.IGNORECASE)
_PADDED = re.compile(r"0\d+")
# Names of columns of identifiers: id, patient_id, "Case No", customerNr, mrn.
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|mrn|ssn|key|nr|no|num|number))|.*[a-z](Id|ID|Nr|No|Key)"
)


def read_numbers(column: pd.Series) -> pd.Series | None:
    """`column` as numbers if every non-missing cell is a number or text that reads as one.

    Returns None for other columns and for categoricals. Times, durations, booleans and integers
    that a float might round are returned unchanged. Raises `ValueError` for infinite numbers in a
    column of text or objects.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return None
    if column.dtype.kind in "biufm" or are_times(column):
        return column
    numbers = pd.to_numeric(column.dropna(), errors="coerce")
    if numbers.dtype.kind not in "biuf" or numbers.isna().any():
        return None
    if are_truths(column) or numbers.abs().max() >= EXACT:
        as_numbers(column)  # raises for infinite cells
        return column
    return numbers.reindex(column.index)


def are_many(distinct: int, known: int) -> bool:
    """Whether `distinct` values in `known` cells are too many for the levels of a category."""
    return distinct > MANY_LEVELS or distinct > NAMES_SHARE * known


def _is_a_mark(known: pd.Series, bad: np.ndarray) -> bool:
    """Whether the `bad` cells are a minority of one or two words among many different numbers."""
    if not 0 < bad.mean() < _MARKS_SHARE:
        return False
    return known[bad].nunique() <= _MARKS and known[~bad].nunique() > MANY_LEVELS


def _are_codes(words: pd.Series) -> bool:
    """Whether all `words` are codes, of which at least three different ones begin with a letter."""
    found = [_CODE.fullmatch(str(word)) for word in words.unique()]
    return all(found) and sum(code["first"] is not None for code in found if code) >= _LEAST_CODES


def refuse_slips(name: str, column: pd.Series, distinct: int) -> str:
    """Raise `ValueError` for a column of many different numbers, or dates, with slips in it.

    If values repeat and all words among numbers are codes, returns one of the words instead of
    raising. Returns an empty string if there are no slips.
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
        # Name other words first: without them, placeholders would be read as missing.
        row = int(min(known.index[bad], key=lambda row: (_is_placeholder(column[row]), row)))
        # Codes repeat, measurements do not. Dates are never codes.
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
    """Whether a cell of `column` is text of two or more digits that begins with 0."""
    is_text = column.dtype.kind == "O"
    return is_text and any(isinstance(c, str) and _PADDED.fullmatch(c) for c in column.tolist())


def may_identify(name: str, column: pd.Series, *, padded: bool) -> bool:
    """Whether a column of numbers may be an identifier: whole, distinct, and named or padded so.

    padded: whether some numbers are written with leading zeros.
    """
    known = column.dropna()
    if column.dtype.kind in "bm" or len(known) < MIN_ROWS_TO_JUDGE:
        return False
    if not (padded or _IDENTIFIER.fullmatch(name)):
        return False
    values = as_numbers(known, huge_offset(known))
    return len(np.unique(values)) == len(values) and np.array_equal(values, np.round(values))


def is_row_number(name: str, column: pd.Series) -> bool:
    """Whether numbers are whole, distinct and fill their range, as an index saved with the rows.

    They may be text or, in an array with fractions, floats, and a few may be missing. If the column
    has no name or that of an index, there may be gaps, as in a sample of rows of a larger table.
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
