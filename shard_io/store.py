"""Where a folder of shards lies: on a file system, or behind a URL. One small set of deeds."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from puicl_config import from_home
from shard_io.checked import CheckedFiles
from shard_io.errors import ShardError, told_as_shard_error
from shard_io.files import (
    check_files,
    create_exclusively,
    publish_files,
    replace_whole,
    staging_folder,
)


class Store(Protocol):
    """What the format needs of a place. Paths are relative to it, with forward slashes.

    Whatever `publish`, `replace` and `create` write appears whole or not at all.
    """

    # Seconds between two looks at what other writers have published.
    look_every: float

    def __truediv__(self, path: str) -> object:
        """A file's place, for messages."""

    def check_writable(self) -> None:
        """Raise `InputError` where nobody can ever write."""

    def names(self) -> list[str]:
        """Names that lie in the place; raises `InputError` where nobody can ever write there."""

    def prepare(self) -> None:
        """Make the place ready for a writer."""

    def read(self, path: str) -> bytes:
        """A file's content; raises `FileNotFoundError`."""

    def present(self, paths: Sequence[str], since: float | None = None) -> set[str]:
        """Those of `paths` that exist, and were written after `since` where that can be told."""

    def create(self, path: str, content: bytes) -> bool:
        """Write a file, or return False and leave alone what exists."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file; a reader sees the old content or the new."""

    def staging(self) -> AbstractContextManager[Path]:
        """A private folder of this machine, gone afterwards."""

    def publish(self, staged: Path, path: str) -> None:
        """Put every file under `staged` (from `staging`) to the same place under `path`."""

    def bring(self, files: Sequence[dict[str, Any]]) -> CheckedFiles:
        """An entry's files in a folder of this machine, each as its SHA-256 says.

        Raises `ShardError` naming the first that is missing, truncated, altered or not to be read.
        """

    def fresh(self, files: Sequence[dict[str, Any]]) -> AbstractContextManager[CheckedFiles]:
        """Like `bring`, for as long as the context lasts, and never from a cache."""

    def listing(self) -> list[str] | None:
        """Paths of all files, sorted; None where the place cannot be listed."""


class LocalStore:
    """A folder on a file system: temporary name, fsync, rename."""

    look_every = 0.5

    def __init__(self, root: Path):
        self._root = root

    def __truediv__(self, path: str) -> Path:
        """See `Store`."""
        return self._root / path

    def check_writable(self) -> None:
        """See `Store`; whether permissions allow it shows when something is written."""

    def names(self) -> list[str]:
        """See `Store`; none where there is no folder yet. Raises `ShardError` for a file."""
        with told_as_shard_error(self._root):
            if not os.path.lexists(self._root):
                return []
            if not self._root.is_dir():
                raise ShardError(
                    f"{self._root} is a file, or a link to nothing; give a folder for the shards"
                )
            return sorted(path.name for path in self._root.iterdir())

    def prepare(self) -> None:
        """Create the folder."""
        with told_as_shard_error(self._root):
            self._root.mkdir(parents=True, exist_ok=True)

    def read(self, path: str) -> bytes:
        """See `Store`."""
        return (self._root / path).read_bytes()

    def present(self, paths: Sequence[str], since: float | None = None) -> set[str]:
        """See `Store`."""
        return {path for path in paths if self._exists(path, since)}

    def create(self, path: str, content: bytes) -> bool:
        """See `Store`."""
        return create_exclusively(self._root, path, content)

    def replace(self, path: str, content: bytes) -> None:
        """See `Store`."""
        replace_whole(self._root, path, content)

    def staging(self) -> AbstractContextManager[Path]:
        """On the same file system, so that files can be moved into place."""
        return staging_folder(self._root)

    def publish(self, staged: Path, path: str) -> None:
        """See `Store`."""
        publish_files(staged, self._root / path)

    def bring(self, files: Sequence[dict[str, Any]]) -> CheckedFiles:
        """Of the folder itself."""
        with told_as_shard_error(self._root):
            return check_files(self._root, files)

    @contextlib.contextmanager
    def fresh(self, files: Sequence[dict[str, Any]]) -> Iterator[CheckedFiles]:
        """See `Store`."""
        yield self.bring(files)

    def listing(self) -> list[str]:
        """See `Store`; links are files, whatever they point to.

        `os.walk` passes over folders that another writer takes away meanwhile.
        """
        found = []
        for folder, folders, files in os.walk(self._root):
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            found += [Path(folder) / name for name in files + links]
        return sorted(path.relative_to(self._root).as_posix() for path in found)

    def _exists(self, path: str, since: float | None) -> bool:
        try:
            # File systems keep coarser times than the clock.
            return (self._root / path).stat().st_mtime >= (since or 0) - 1
        except FileNotFoundError:
            return False


def store_of(folder: "Path | Store") -> Store:
    """The store of a folder; a store is its own."""
    return LocalStore(folder) if isinstance(folder, Path) else folder


def folder_of(text: str | Path) -> "Path | Store":
    """`text` as a folder of this machine or, where it is a URL, as a remote store.

    Raises `InputError` for a URL of a kind that is not supported, and for the home of a user that
    is not there.
    """
    if isinstance(text, Path) or "://" not in text:
        return from_home(text)
    from shard_io.remote import RemoteStore  # only here: fsspec costs every start something

    return RemoteStore(text)


def local_folder(text: str) -> Path:
    """`text` as a folder of this machine; raises `ShardError` where it is a URL."""
    if "://" in text:
        raise ShardError(f"{text} is a URL; give a folder of this machine")
    return from_home(text)
