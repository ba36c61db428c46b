"""Tables in a folder: `NAME.csv.gz` or `NAME.csv`, with a header row and `target` last."""

import csv
import difflib
import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from pu_bench.data.canonical import (
    CanonicalTable,
    Table,
    canonical_table,
    encode,
    read_csv_rows,
)
from puicl_config import InputError

INDEX = "index.json"
KEYS = ("positive", "categorical", "title")
_NOTES = ("_", "x-")
# Fewest rows of a class: one that is labelled and two that are not.
_FEWEST = 3


def table_path(folder: Path, name: str) -> Path | None:
    """The file of a table, or None if the folder has none."""
    for suffix in (".csv.gz", ".csv"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    return None


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Column names and rows of text; raises `InputError` if the file is no such table."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        rows = read_csv_rows(content.decode("utf-8-sig"))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    if len(rows) < 2 or rows[0][-1] != "target":
        raise InputError(f"{path} must have a header whose last column is target, and rows")
    return rows[0], rows[1:]


def read_index(folder: Path) -> dict[str, dict[str, Any]] | None:
    """A folder's `index.json`, or None if it has none.

    It maps each table's name to a description with `positive` (the positive class as text) and
    optionally `categorical` (columns whose numbers are codes) and `title`; other keys are notes and
    ignored. Raises `InputError` if the file is not of this form, if a name leads out of the folder,
    or if an unknown key looks like a misspelling of one that is missing.
    """
    path = folder / INDEX
    if not path.is_file():
        return None
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no JSON: {' '.join(str(error).split())}") from None
    if not isinstance(index, dict) or not index:
        raise InputError(f"{path} must map names of tables to their descriptions")
    for name, facts in index.items():
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise InputError(f"{path} names {name}, which leads out of {folder}")
        if isinstance(facts, dict):
            _refuse_misspelt(path, name, facts)
        if not isinstance(facts, dict) or not isinstance(facts.get("positive"), str):
            raise InputError(f"{path}: {name} must say `positive`, the positive class as text")
        categorical = facts.get("categorical", [])
        if not (isinstance(categorical, list) and all(isinstance(c, str) for c in categorical)):
            raise InputError(f"{path}: `categorical` of {name} must be a list of columns' names")
        if not isinstance(facts.get("title", name), str):
            raise InputError(f"{path}: `title` of {name} must be text")
    return index


def _refuse_misspelt(path: Path, name: str, facts: dict[str, Any]) -> None:
    lacking = [key for key in KEYS if key not in facts]
    for key in facts:
        near = difflib.get_close_matches(key.lower(), lacking, n=1, cutoff=0.75)
        if near and key not in KEYS and not key.startswith(_NOTES):
            raise InputError(
                f"{path}: unknown key {key} of {name}; did you mean {near[0]}? (a note's key "
                "begins with _)"
            )


def indexed_table(folder: Path, name: str, facts: dict[str, Any]) -> Table:
    """A table of a folder with an index, encoded by the protocol.

    Raises `InputError` if the table is missing or damaged, contradicts the index, or has fewer than
    3 rows of a class.
    """
    path = table_path(folder, name)
    if path is None:
        raise InputError(f"{folder} has no {name}.csv or {name}.csv.gz, which its {INDEX} names")
    table = _canonical(path)
    categorical = facts.get("categorical", [])
    strangers = sorted(set(categorical) - set(table.columns))
    if strangers:
        raise InputError(f"{path} has no column {strangers[0]!r}, categorical in {INDEX}")
    target = table.column("target")
    if "" in target:
        raise InputError(f"{path}: {target.count('')} of {len(target)} rows have no target")
    classes = sorted(set(target))
    if len(classes) != 2 or facts["positive"] not in classes:
        raise InputError(
            f"{path}: target must have two values, one of them {facts['positive']!r}, not "
            f"{', '.join(classes[:5])}"
        )
    fewest = min(classes, key=target.count)
    if target.count(fewest) < _FEWEST:
        raise InputError(
            f"{path}: {target.count(fewest)} rows of class {fewest!r}; a split needs {_FEWEST} of "
            "each"
        )
    try:
        return encode(
            table,
            name,
            facts.get("title", name),
            lambda labels: np.array([label == facts["positive"] for label in labels]),
            categorical,
        )
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


def _canonical(path: Path) -> CanonicalTable:
    columns, rows = read_table(path)
    try:
        return canonical_table(columns, rows)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
