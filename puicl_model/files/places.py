"""Bookkeeping for a folder of tables: the tables, the places of their scores, and their records."""

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from puicl_config import InputError, ProgressReport, write_atomically
from puicl_config.progress import looking
from puicl_model.files.formats import READ, WRITTEN, is_passed_over, shown

SUMMARY = "_summary.csv"
_RECORDS = ".puicl"
_SETTINGS = "settings.json"
_LOOK_EVERY = 0.5  # seconds


@dataclass(frozen=True)
class Place:
    """A table of the folder: its relative name, and the paths of its file, scores and record.

    shared: digest of the labelled positives of all parts, if the tables are parts of one table.
    """

    name: str
    source: Path
    target: Path
    record: Path
    shared: str | None = None

    @property
    def stamp(self) -> list[int | str]:
        """A value that changes when the file or the shared positives change."""
        there = self.source.stat()
        own: list[int | str] = [there.st_size, there.st_mtime_ns]
        return own if self.shared is None else [*own, self.shared]

    def told(self) -> dict[str, Any] | None:
        """The record if it is whole, up to date and has an error or existing scores; else None."""
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
            whole = "error" in record or self.target.exists()
            return record if whole and record["stamp"] == self.stamp else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None


def find_tables(data: Path, out: Path) -> list[Place]:
    """Find the CSV, Parquet and Excel files in `data` and below, sorted by name.

    Skips hidden files and names that begin with _. Scores get the table's own name; those of a
    workbook are CSV, with .csv appended to the name. Raises `InputError` if there are no tables, if
    two tables' scores would have the same name, or if `out` is not a possible folder for them.
    """
    here, there = data.resolve(), out.resolve()
    if here == there or here in there.parents or there in here.parents:
        raise InputError(
            f"--out {out} and --data {data} are the same or contain each other; give another folder"
        )
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder for the scores of a folder of tables")
    if not out.parent.is_dir():
        raise InputError(f"the folder of {out} does not exist")
    names = [name for name in _files(data) if name.suffix.lower() in READ]
    if not names:
        raise InputError(f"{data} is a folder without CSV, Parquet or Excel files")
    targets = {
        name: name if name.suffix.lower() in WRITTEN else name.with_name(f"{name.name}.csv")
        for name in names
    }
    for name, target in targets.items():
        if name != target and target in targets:
            raise InputError(
                f"scores of {name} and of {target} would have the same name: rename one of them"
            )
    return [
        Place(
            shown(name.as_posix()),
            (data / name).absolute(),
            (out / target).absolute(),
            (out / _RECORDS / name.with_name(f"{name.name}.json")).absolute(),
        )
        for name, target in targets.items()
    ]


def passed_over(data: Path) -> list[str]:
    """Names of files in `data` that look like tables in formats that `find_tables` skips."""
    return [shown(name.as_posix()) for name in _files(data) if is_passed_over(name)]


def _files(data: Path) -> list[Path]:
    """Relative paths of files in `data`, sorted; skips hidden files, _names and Excel's ~$names."""
    return sorted(
        path.relative_to(data)
        for path in data.rglob("*")
        if path.is_file()
        and not any(part.startswith((".", "_", "~$")) for part in path.relative_to(data).parts)
    )


def claim(out: Path, settings: dict[str, Any], places: Sequence[Place]) -> None:
    """Record in `out` the settings that the scores of `places` are made with.

    Raises `InputError` if `out` holds scores made with other or unreadable settings, if it was
    never claimed and holds files that the scores would replace, or if it cannot be written. Without
    scores, as after a run with a misspelled column name, any settings are accepted.
    """
    noted = out / _RECORDS / _SETTINGS
    written = [*(place.target for place in places), out.absolute() / SUMMARY]
    theirs = [path.relative_to(out.absolute()) for path in written if path.exists()]
    if theirs and not noted.exists():
        name = shown(theirs[0].as_posix())
        raise InputError(
            f"--out {out} holds {name}, which would be overwritten although this command did "
            "not write it: give another --out, or move it away"
        )
    if noted.exists() and any(path.suffix.lower() in WRITTEN for path in _files(out)):
        there = _noted_settings(noted)
        for key, value in settings.items():
            # Settings written by older versions lack newer options.
            if key in there and there[key] != value and key != "model":
                raise InputError(
                    f"{out} holds scores made with {key} {there.get(key)!r}, not {value!r}: give "
                    "another --out, or the same options"
                )
    try:
        noted.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(noted, (json.dumps(settings, indent=1) + "\n").encode())
    except OSError as error:
        raise InputError(
            f"--out {out} cannot be written: {error.strerror}; give another folder"
        ) from None


def _noted_settings(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        raise InputError(
            f"{path} is damaged, and it alone tells the options of the scores beside it: put it "
            "back, or give another --out"
        ) from None


@contextlib.contextmanager
def watching(missing: Sequence[Place], total: int) -> Iterator[None]:
    """Show progress inside the context by counting records, which works with every backend."""
    waiting, failed = list(missing), 0

    def look() -> None:
        nonlocal waiting, failed
        records = [place.told() for place in waiting]
        failed += sum("error" in record for record in records if record)
        before = len(waiting)
        waiting = [place for place, record in zip(waiting, records, strict=True) if record is None]
        if len(waiting) < before:
            progress.advance(before - len(waiting), f"{failed} failed" if failed else "")

    with (
        ProgressReport("puicl", total, "tables", done=total - len(missing)) as progress,
        looking(look, _LOOK_EVERY),
    ):
        yield


def write_summary(out: Path, done: dict[str, dict[str, Any]]) -> None:
    """Write the summary as CSV, with one line per table."""
    columns = ["n_labeled", "n_unlabeled", "class_prior", "low", "high"]
    lines = [
        {
            "table": name,
            **{column: told.get(column) for column in columns},
            "warnings": "; ".join(told.get("warnings", [])),
            "error": told.get("error", ""),
        }
        for name, told in done.items()
    ]
    frame = pd.DataFrame(lines).astype({"n_labeled": "Int64", "n_unlabeled": "Int64"})
    write_atomically(out / SUMMARY, frame.to_csv(index=False).encode())
