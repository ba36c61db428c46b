"""Excel workbooks as people keep tables in them: which sheet, which line is the header."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pandas as pd

from puicl_config import InputError

# What a formula that failed leaves in its cell says nothing of the row.
_ERRORS = frozenset(("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A"))
_MERGED = re.compile(rb"<(?:\w+:)?mergeCell\s[^>]*?\bref\s*=\s*[\"']([^\"']+)[\"']")
_CHUNK = 1 << 20  # bytes
_LONGEST_TAG = 300  # bytes


def read_excel(path: Path, sheet: str | None = None) -> pd.DataFrame:
    """The table on `sheet` of the workbook `path`; None: on the only visible one with entries.

    The first line with an entry is the header. Lines without any, and columns with neither a name
    nor an entry, are left out. Of formulas the values count that were last saved. Cells below the
    header that are merged over several rows have their value in each of them.

    Raises `InputError` where the file cannot be read, there is no such sheet or more than one, a
    title stands above the header, a column's name stands there twice, or all that a column holds
    are formulas whose values were never saved.
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
    """The lines of each sheet that may be meant by its name; of others than `sheet` none.

    formulas: these as they are written, instead of their values.
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
                    place.reset_dimensions()  # which some programs write wrongly
                    rows = list(place.iter_rows(values_only=True))
                    found[place.title] = list(_lines(rows, _merged(place)))
                elif sheet is not None:
                    found[place.title] = []
    except BadZipFile:
        raise InputError(
            f"{path} cannot be read as Excel: it is no .xlsx file, or has a password"
        ) from None
    except Exception as error:  # of many kinds, where it is damaged
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{path} cannot be read as Excel: {reason}") from None
    return found


def _merged(place: Any) -> dict[int, list[tuple[int, int]]]:
    """Cells of a sheet that are merged over several rows: by the first row, column and last row.

    All from 0; of several columns the first. openpyxl tells of them only where it makes an object
    of every cell, those of the merged ranges, too, of which a file may have as many as it likes.
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
    """Programs that write formulas without computing them leave cells that read as missing."""
    written = _table(_sheets(path, sheet, formulas=True)[sheet], place)
    for name in table.columns.intersection(written.columns):
        if table[name].isna().all() and written[name].astype(str).str.startswith("=").any():
            raise InputError(
                f"{place} holds formulas in column {name!r} whose values were never computed: "
                "open the workbook in a spreadsheet program, save it, and try again"
            )


def _lines(
    rows: Sequence[Sequence[Any]], merged: Mapping[int, Sequence[tuple[int, int]]]
) -> Iterator[list[Any]]:
    """Cells of each row up to the last entry; of rows without any nothing.

    merged: see `_merged`. A row with no other entry than theirs has none; the header's stay there.
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
            name = f"Unnamed: {j}"  # as pandas calls it in a CSV file
        if str(name) in columns:
            raise InputError(f"{place} has more than one column {str(name)!r}")
        columns[str(name)] = pd.Series(cells, dtype=object).infer_objects()
    return pd.DataFrame(columns)
