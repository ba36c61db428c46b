"""Judge by its cells whether a column holds numbers, identifiers or row numbers."""

import re

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import (
    EXACT,
    are_times,
    are_truths,
    as_numbers,
    huge_offset,
)

# More different numbers than this are more than the levels of a category.
MANY_LEVELS = 20
# A text column with more levels than this share of its rows names rows rather than groups.
NAMES_SHARE = 0.5
MIN_ROWS_TO_JUDGE = 20
# A row number is missing in less than this share of the rows.
_GAPS_SHARE = 0.2
# Names that pandas and Parquet give to an index that was saved as a column.
_INDEX = re.compile(r"|Unnamed: \d+(\.\d+)*|level_\d+|__index_level_\d+__|index", re.IGNORECASE)
_PADDED = re.compile(r"0\d+")
# Names of columns of identifiers: id, patient_id, "Case No", customerNr, mrn.
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|mrn|ssn|key|nr|no|num|number))|.*[a-z](Id|ID|Nr|No|Key)"
)

# Names of columns that say, if entries repeat, which rows are of one person or place.
_GROUPS = re.compile(r"(?i:(.*[\W_])?(ids?|mrn|ssn|uuid|guid))|.*[a-z](Id|ID)")
# An entry of such a column is found in fewer rows than this on average.
_GROUP_ROWS = 20


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


def have_zeros_in_front(column: pd.Series) -> bool:
    """Whether a cell of `column` is text of two or more digits that begins with 0."""
    is_text = column.dtype.kind == "O"
    return is_text and any(isinstance(c, str) and _PADDED.fullmatch(c) for c in column.tolist())


def padded_code(column: pd.Series) -> str:
    """A cell with zeros in front if all are text of as many digits, three or more, as codes are.

    Empty if not, or if there are too few cells to say so.
    """
    cells = column.dropna().tolist()
    if column.dtype.kind != "O" or len(cells) < MIN_ROWS_TO_JUDGE:
        return ""
    if not all(isinstance(cell, str) and cell.isdecimal() for cell in cells):
        return ""
    if len({len(cell) for cell in cells}) != 1 or len(cells[0]) < 3:
        return ""
    return next((cell for cell in cells if cell.startswith("0")), "")


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


def n_groups(name: str, column: pd.Series) -> int:
    """The number of entries of a column whose name says that they group the rows, else 0.

    Only many entries of few rows each count: few of many rows are a category like any other, and
    where none repeats, there are no groups.
    """
    if not _GROUPS.fullmatch(name):
        return 0
    known = column.dropna()
    entries = (known.astype(str) if known.dtype.kind == "O" else known).nunique()
    if entries == len(known) or not MANY_LEVELS < entries > len(known) / _GROUP_ROWS:
        return 0
    if column.dtype.kind == "f" and not np.array_equal(known, np.round(known)):
        return 0  # a measurement, such as an inner diameter
    return entries


def is_row_number(name: str, column: pd.Series) -> bool:
    """Whether numbers are whole, distinct and fill their range, as an index saved with the rows.

    They may be text or, in an array with fractions, floats, and a few may be missing. If the column
    has no name or that of an index, there may be gaps, as in a sample of rows of a larger table.
    """
    known = column.dropna()
    if column.dtype.kind in "bm" or len(known) < MIN_ROWS_TO_JUDGE:
        return False
    if column.isna().mean() >= _GAPS_SHARE:
        return False
    values = as_numbers(known, huge_offset(known))
    whole = np.array_equal(values, np.round(values))
    filled = values.max() <= values.min() + len(column) - 1  # without overflow
    filled |= _INDEX.fullmatch(name) is not None
    return whole and filled and len(np.unique(values)) == len(values)
