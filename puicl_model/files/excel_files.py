"""Read tables from Excel workbooks: find the sheet, the header and the entries."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pandas as pd

from puicl_config import InputError

# Results of failed formulas, which count as missing cells.
_ERRORS = frozenset(("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"))
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?\bref\s*=\s*[\"']([^\"']+)[\"']")
_CHUNK = 1 << 20  # bytes
_MOST_ROWS = 1 << 20
_LONGEST_TAG = 300  # bytes


def read_excel(path: Path, sheet: str | None = None) -> pd.DataFrame:
    """Read the table on `sheet` of the workbook `path`; None: on the only visible one with entries.

    The first line with an entry is the header. Empty lines, and columns with neither a name nor an
    entry, are left out. Formulas count as their last saved values. Cells below the header that are
    merged over several rows have their value in each of these rows.

    Raises `InputError` if the file cannot be read, if the sheet does not exist or is not unique, if
    a title stands above the header, if two columns have the same name, or if a column holds only
    formulas whose values were never saved.
    """
    if not path.is_file():
        raise InputError(f"no file {path}")
    sheets = _sheets(path, sheet)
    if sheet is not None and sheet not in sheets:
        there = ", ".join(map(repr, sheets))
        raise InputError(f"{path} has no sheet {sheet!r}; it has {there}")
    filled = {name: lines for name, lines in sheets.items() if lines}
    if sheet is None and len(filled) > 1:
        there = ", ".join(map(repr, filled))
        raise InputError(f"{path} has {len(filled)} sheets: give one of {there} as --sheet")
    name = next(iter(filled), None) if sheet is None else sheet
    if name not in filled:
        raise InputError(f"{path} has no entries" + ("" if sheet is None else f" on {sheet!r}"))
    place = f"{path}, sheet {name!r},"
    table = _table(filled[name], place)
    if any(table[column].isna().all() for column in table) and len(table):
        _refuse_uncomputed(path, name, table, place)
    return table


def _sheets(path: Path, sheet: str | None, *, formulas: bool = False) -> dict[str, list[list[Any]]]:
    """Map sheet names to lines of cells: the given `sheet`, or all visible ones if it is None.

    If `sheet` is given, other sheets have no lines. formulas: whether to return formulas instead of
    their values.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise InputError(
            "Excel files need openpyxl: pip install openpyxl, or save the sheet as CSV"
        ) from None
    found: dict[str, list[list[Any]]] = {}
    try:
        with closing(load_workbook(path, read_only=True, data_only=not formulas)) as book:
            for place in book.worksheets:
                if place.title == sheet or (sheet is None and place.sheet_state == "visible"):
                    place.reset_dimensions()  # some programs save wrong dimensions
                    rows = _possible(place.iter_rows(values_only=True))
                    found[place.title] = list(_lines(rows, _merged(place)))
                elif sheet is not None:
                    found[place.title] = []
    except BadZipFile:
        raise InputError(
            f"{path} cannot be read as Excel: it is no .xlsx file, or has a password"
        ) from None
    except Exception as error:  # damaged files raise many kinds of errors
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path} cannot be read as Excel: {reason}") from None
    return found


def _possible(rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """Yield the rows; raises `ValueError` after as many as a sheet can have.

    openpyxl fills in the rows above the one that a cell says it is in, whatever its number.
    """
    for number, row in enumerate(rows):
        if number == _MOST_ROWS:
            raise ValueError(f"a sheet has at most {_MOST_ROWS:,} rows")
        yield row


def _merged(place: Any) -> dict[int, list[tuple[int, int]]]:
    """Map first rows to (column, last row) of cells that are merged over several rows.

    All are counted from 0; if several columns are merged, it is the first. Parsed from the XML,
    because openpyxl only reports merged cells in a mode that creates an object for every cell, even
    within merged ranges, which may be huge.
    """
    from openpyxl.utils import range_boundaries

    names, kept = set(), b""
    with place._get_source() as source:
        for chunk in iter(partial(source.read, _CHUNK), b""):
            text = kept + chunk
            if b"mergeCell" in text:
                names.update(_MERGED.findall(text))
            kept = text[-_LONGEST_TAG:]
    merged: dict[int, list[tuple[int, int]]] = {}
    for name in names:
        column, first, _, last = range_boundaries(name.decode())
        if first < last:
            merged.setdefault(first - 1, []).append((column - 1, last - 1))
    return merged


def _refuse_uncomputed(path: Path, sheet: str, table: pd.DataFrame, place: str) -> None:
    """Raise `InputError` if an empty column has formulas that were saved without their values."""
    written = _table(_sheets(path, sheet, formulas=True)[sheet], place)
    for name in table.columns.intersection(written.columns):
        if table[name].isna().all() and written[name].astype(str).str.startswith("=").any():
            raise InputError(
                f"{place} holds formulas in column {name!r} whose values were never computed: "
                "open the workbook in a spreadsheet program, save it, and try again"
            )


def _lines(
    rows: Iterable[Sequence[Any]], merged: Mapping[int, Sequence[tuple[int, int]]]
) -> Iterator[list[Any]]:
    """Yield the cells of each row up to its last entry, without empty rows.

    merged: see `_merged`. A row whose only entries are from merged cells above counts as empty.
    Merged cells in the header are not repeated below it.
    """
    header, going_on = True, dict[int, tuple[Any, int]]()
    for number, row in enumerate(rows):
        cells = [None if _says_nothing(cell) else cell for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if not cells:
            continue
        for column, last in () if header else merged.get(number, ()):
            if column < len(cells) and cells[column] is not None:
                going_on[column] = cells[column], last
        for column, (value, last) in list(going_on.items()):
            if number > last:
                del going_on[column]
                continue
            cells.extend([None] * (column + 1 - len(cells)))
            cells[column] = value
        header = False
        yield cells


def _says_nothing(cell: Any) -> bool:
    return isinstance(cell, str) and (not cell.strip() or cell in _ERRORS)


def _table(lines: list[list[Any]], place: str) -> pd.DataFrame:
    header, *rows = lines
    width = max(map(len, lines))
    if len(header) == 1 < width:
        raise InputError(
            f"{place} begins with {header[0]!r} alone: remove lines above the columns' names"
        )
    columns: dict[str, pd.Series] = {}
    for j in range(width):
        cells = [row[j] if j < len(row) else None for row in rows]
        name = header[j] if j < len(header) else None
        if name is None:
            if all(cell is None for cell in cells):
                continue
            name = f"Unnamed: {j}"  # the name that pandas gives in CSV files
        if str(name) in columns:
            raise InputError(f"{place} has more than one column {str(name)!r}")
        columns[str(name)] = pd.Series(cells, dtype=object).infer_objects()
    return pd.DataFrame(columns)
