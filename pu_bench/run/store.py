"""Finished cells on disk: one line of JSON each, written at once and safe from any kill."""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from puicl_config import InputError, write_atomically
from puicl_config.locks import open_lock, take_lock

Record = dict[str, Any]


class CellLog:
    """An append-only file of records; several processes may append.

    A line cut off by a kill is no record; the next append terminates it first.
    """

    def __init__(self, path: Path):
        self.path = path

    def append(self, record: Record) -> None:
        """Add a record; it is on disk when this returns."""
        line = json.dumps(record, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # Without locks, too, a line is still a single write to the end of the file.
            take_lock(descriptor, wait=True)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rewrite(self, records: Iterable[Record]) -> None:
        """Replace the file's content by these records."""
        lines = (json.dumps(record, allow_nan=False, separators=(",", ":")) for record in records)
        write_atomically(self.path, "".join(f"{line}\n" for line in lines).encode())

    @contextlib.contextmanager
    def begun_from(self, table: Path, read: Callable[[Path], Iterable[Record]]) -> Iterator[None]:
        """If there is no log, as in a published folder, begin it with what `read` finds in `table`.

        If the block raises `InputError`, the new log is removed again.
        """
        begins = table.is_file() and not self.path.exists()
        if begins:
            self.rewrite(read(table))
        try:
            yield
        except InputError:
            if begins:
                self.path.unlink()
            raise

    def records(self, key: Callable[[Record], Any]) -> dict[Any, Record]:
        """The last record of each key, in the order in which the keys first appear.

        Raises `InputError` naming a complete line that has no key.
        """
        found: dict[Any, Record] = {}
        if self.path.is_file():
            with self.path.open("rb") as file:
                for number, line in enumerate(file, start=1):
                    try:
                        record = json.loads(line)
                    except ValueError:  # cut off by a kill
                        continue
                    try:
                        found[key(record)] = record
                    except (KeyError, TypeError):
                        raise InputError(f"{self.path}: line {number} is no cell") from None
        return found


def is_done(record: Record | None, retry_failed: bool) -> bool:
    """Whether a cell need not be run: it has a record, and not a failure to be retried."""
    return record is not None and not (retry_failed and record["error"])


@contextlib.contextmanager
def only_run_in(folder: Path) -> Iterator[None]:
    """Make the folder and hold its lock for the block.

    Raises `InputError` if another run holds the lock, if the folder cannot be written, or if the
    lock is a symbolic link. On a file system without locks, prints a warning and continues.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open_lock(folder / ".lock")
    except OSError as error:
        raise InputError(f"--out {folder} cannot be written: {error.strerror}") from None
    with file as lock:
        try:
            locked = take_lock(lock, wait=False)
        except BlockingIOError:
            raise InputError(f"another `puicl bench` is running in {folder}") from None
        if not locked:
            print(
                f"{folder} is on a file system without locks: see that no other `puicl bench` runs "
                "there",
                file=sys.stderr,
            )
        yield
