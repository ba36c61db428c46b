"""Read numbers with decimal commas that pandas leaves as text."""

import re
from typing import Any

import pandas as pd

from puicl_model.preprocessing.find_spelling import amounts_with_commas
from puicl_model.preprocessing.placeholders import without
from puicl_model.preprocessing.reading import is_missing, plain_cells

# Attribute of a table that was read with decimal commas. For each column of numbers with points, it
# says whether these separate thousands ("thousands") or mark fractions ("fractions").
POINTS = "points"
# With a decimal comma, a point separates thousands, as in 1.234,5; but it cannot do so in 0.125.
_THOUSANDS = r"\s*[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?:,\d+)?\s*"
_COMMA = r"\s*[+-]?(?:\d+,\d*|,\d+)(?:[eE][+-]?\d+)?\s*"
_POINT = r"\s*[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"
# Whole numbers such as 1,0, as pandas writes labels in a column with missing ones.
_WHOLE_FLOAT = re.compile(r"(\s*[+-]?\d+),(0+\s*)")


def read_commas(table: pd.DataFrame, others: set[str | None]) -> dict[str, str]:
    """Convert numbers with decimal commas in text columns of `table`, except `others`, in place.

    A single `?` or word makes pandas leave a whole column as text, including 0,5 and 1.234. Such a
    column becomes numeric if all its non-missing cells are numbers, possibly with a unit or a
    currency (1,250 kg). Otherwise it stays text, but its numbers are rewritten with decimal points.
    Cells that are not text, as workbooks may have in the same column, are unchanged. If points mark
    fractions in some cell, the whole column is unchanged.

    Returns, for columns of bare numbers with points, what the points mean; see `POINTS`.
    """
    points = {}
    for name in table.columns.difference([*others]):
        column = table[name]
        if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
            continue
        cells = plain_cells(column)
        if spelling := amounts_with_commas(amounts := without(cells)):
            said = spelling.read(amounts).astype(float)
            # Keep placeholders: the preprocessor decides whether they are missing cells, and warns.
            stay = said.isna() & cells.notna()
            table[name] = said.astype(object).mask(stay, cells).infer_objects()
            continue
        known = column[~is_missing(column)].astype(object)
        text = known[[isinstance(cell, str) for cell in known]].astype(str)
        parted = text.str.fullmatch(_THOUSANDS)
        pointed = text.str.contains(".", regex=False)
        if (text.str.fullmatch(_POINT) & ~parted).any():
            if pd.to_numeric(known.astype(str), errors="coerce").notna().all():
                points[name] = "fractions"
            continue
        if (parted & pointed).any():
            points[name] = "thousands"
        plain = text[parted & pointed | text.str.fullmatch(_COMMA)]
        if plain.empty:
            continue
        known[plain.index] = plain.str.replace(".", "").str.replace(",", ".")
        numbers = pd.to_numeric(known.astype(str), errors="coerce")
        read = numbers.astype(float) if numbers.notna().all() else known
        table[name] = read.reindex(table.index)
    return points


def plain_label(entry: Any) -> Any:
    """`entry` with a decimal point if it is text of a whole number with a comma, such as 1,0."""
    if isinstance(entry, str) and (found := _WHOLE_FLOAT.fullmatch(entry)):
        return f"{found[1]}.{found[2]}"
    return entry
