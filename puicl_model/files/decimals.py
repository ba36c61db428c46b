"""Numbers written with decimal commas, where pandas leaves them as text."""

import re
from typing import Any

import pandas as pd

from puicl_model.preprocessing.placeholders import without
from puicl_model.preprocessing.reading import is_missing, plain_cells
from puicl_model.preprocessing.spellings import amounts_with_commas

# The attribute of a table read with decimal commas that says of each column whose numbers have
# points whether these part thousands or begin fractions.
POINTS = "points"
# Beside a decimal comma a point parts thousands: 1.234,5. In 0.125 it cannot.
_THOUSANDS = r"\s*[+-]?(?:[1-9]\d{0,2}(?:\.\d{3})+|\d+)(?:,\d+)?\s*"
_COMMA = r"\s*[+-]?(?:\d+,\d*|,\d+)(?:[eE][+-]?\d+)?\s*"
_POINT = r"\s*[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?\s*"
# As pandas writes labels beside missing ones.
_WHOLE_FLOAT = re.compile(r"(\s*[+-]?\d+),(0+\s*)")


def read_commas(table: pd.DataFrame, others: set[str | None]) -> dict[str, str]:
    """Write the numbers in text columns of `table` but `others` with decimal points, in place.

    One `?` or word makes a column text, in which pandas leaves 0,5 and 1.234 as they stand. Such
    columns are numbers then where all cells that are there are, with a unit or a currency, too
    (1,250 kg), else text in which the numbers can be read as in a file with points. Cells that are
    no text, as workbooks have beside it, are what they are. Returns what points are in the columns
    of bare numbers that have some: see `POINTS`. Where they begin fractions in some cell, the
    column stays as it is.
    """
    points = {}
    for name in table.columns.difference([*others]):
        column = table[name]
        if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
            continue
        cells = plain_cells(column)
        if spelling := amounts_with_commas(amounts := without(cells)):
            said = spelling.read(amounts).astype(float)
            # Placeholders stay: whether they are missing cells is judged later, and told.
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
    """A label with a decimal point where it is text of a whole number with a comma: 1,0."""
    if isinstance(entry, str) and (found := _WHOLE_FLOAT.fullmatch(entry)):
        return f"{found[1]}.{found[2]}"
    return entry
