"""Files of a results folder: what a run writes and a report reads."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pu_bench.run.metrics import METRICS
from pu_bench.run.store import Record
from puicl_config import InputError, write_atomically

CELLS, RUN, ENVIRONMENT = "cells.jsonl", "run.json", "environment.json"
RESULTS, DETAILS = "results.csv", "details.csv"
SWEEP_CELLS, SWEEP_RUN, SWEEP_RESULTS = "sweep_cells.jsonl", "sweeps.json", "sweeps.csv"
# Keys that every run.json has.
FACTS = ("protocol", "collection", "tables", "methods")
RESULT_COLUMNS = ("task", "method", "repeat", *METRICS, "seconds", "error")
_TEXTS = ("task", "method", "error", "rows_seen", "sweep", "kind", "pool")
DETAIL_COLUMNS = (
    *("task", "method", "repeat", "collapsed", "n_labeled", "n_unlabeled", "n_features", "pi"),
    *("rows_seen", "reliability"),
)


def refuse_unclaimed(out: Path, run: str, results: Sequence[str]) -> None:
    """Raise `InputError` if `out` holds any file of `results` without `run`, which identifies them.

    `run` is written before the first cell, so no kill leaves a folder in this state.
    """
    there = [name for name in results if (out / name).exists()]
    if there and not (out / run).is_file():
        raise InputError(
            f"{out} holds {' and '.join(there)} without the {run} that says which tables and "
            f"weights they are of: put {run} back, or give another --out"
        )


def write_results(out: Path, records: Sequence[Record]) -> None:
    """Write results.csv and details.csv, with one row for each cell and floats to 6 digits."""
    ordered = sorted(records, key=lambda r: (r["task"], r["method"], r["repeat"]))
    write_atomically(out / RESULTS, csv_of(RESULT_COLUMNS, ordered))
    write_atomically(out / DETAILS, csv_of(DETAIL_COLUMNS, ordered))


def read_results(out: Path) -> list[Record]:
    """The records that `write_results` wrote to `out`, with floats to 6 digits.

    Raises `InputError` if the files are missing, damaged, or do not belong together.
    """
    rows = [read_rows(out / name) for name in (RESULTS, DETAILS)]
    if [_key(row) for row in rows[0]] != [_key(row) for row in rows[1]]:
        raise InputError(f"{out}: {RESULTS} and {DETAILS} hold different cells")
    try:
        return [
            {column: value_of(column, text) for column, text in (first | second).items()}
            for first, second in zip(*rows, strict=True)
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{out}: {RESULTS} or {DETAILS} is damaged: {error}") from None


def read_facts(path: Path, keys: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON object in a file of a results folder.

    Raises `InputError` if the file is damaged, holds no object, or lacks one of `keys`.
    """
    facts = _read_json(path)
    lacks = [key for key in keys if key not in facts] if isinstance(facts, dict) else ["{"]
    if lacks:
        raise InputError(f"{path} is damaged: there is no {lacks[0]!r} in it")
    return facts


def read_environments(path: Path) -> list[dict[str, Any]]:
    """The environments in which a folder's results were computed; empty if there is no such file.

    Raises `InputError` if the file is damaged or holds something else.
    """
    if not path.is_file():
        return []
    found = _read_json(path)
    if not (isinstance(found, list) and all(isinstance(each, dict) for each in found)):
        raise InputError(f"{path} is damaged: it is no list of environments")
    return found


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged: {' '.join(str(error).split())}") from None


def to_six_digits(record: Record) -> Record:
    """The record as `read_results` returns it after `write_results`."""
    return {
        column: value_of(column, str(_cell(record[column])))
        for column in dict.fromkeys((*RESULT_COLUMNS, *DETAIL_COLUMNS))
    }


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file with a header, as text; raises `InputError` if there is no file."""
    if not path.is_file():
        raise InputError(f"there is no {path}")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _key(row: dict[str, str]) -> tuple[str, ...]:
    return row["task"], row["method"], row["repeat"]


def value_of(column: str, text: str) -> object:
    """The value that a text in a column of a results table stands for."""
    if text == "":
        return None
    if column in _TEXTS:
        return text
    if column == "collapsed":
        return text == "True"
    return json.loads(text) if column == "reliability" else _number(text)


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def csv_of(columns: Sequence[str], records: Sequence[Record]) -> bytes:
    """The records as CSV with a header, with floats to 6 digits and nothing for None."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(record[column]) for column in columns] for record in records)
    return out.getvalue().encode()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return json.dumps(value, separators=(",", ":"))
    return "" if value is None else value
