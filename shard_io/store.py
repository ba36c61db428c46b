"""Stores: the operations that folders of shards need, on a file system or behind a URL."""

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
    """The operations that the format needs. Paths are relative to the store, with forward slashes.

    Each file that `publish`, `replace` or `create` writes appears whole or not at all.
    """

    # Seconds to wait between two checks for what other writers have published.
    look_every: float

    def __truediv__(self, path: str) -> object:
        """The full path or URL of a file, for messages."""

    def check_writable(self) -> None:
        """Raise `InputError` if the store is of a read-only kind."""

    def names(self) -> list[str]:
        """Names at the top of the store; raises `InputError` if it is of a read-only kind."""

    def prepare(self) -> None:
        """Prepare the store for writing."""

    def read(self, path: str) -> bytes:
        """A file's content; raises `FileNotFoundError` if there is no such file."""

    def present(self, paths: Sequence[str], since: float | None = None) -> set[str]:
        """Those of `paths` that exist and, if the store knows times, were written after `since`.

        `since` is in seconds since the epoch.
        """

    def create(self, path: str, content: bytes) -> bool:
        """Write a file; if it exists, leave it alone and return False."""

    def replace(self, path: str, content: bytes) -> None:
        """Write a file; a reader sees either the old content or the new."""

    def staging(self) -> AbstractContextManager[Path]:
        """A private local folder, which is removed afterwards."""

    def publish(self, staged: Path, path: str) -> None:
        """Move or upload every file under `staged` (from `staging`) to its place under `path`."""

    def bring(self, files: Sequence[dict[str, Any]]) -> CheckedFiles:
        """An entry's files in a local folder, checked against their SHA-256.

        Raises `ShardError` naming the first that is missing, truncated, altered or unreadable.
        """

    def fresh(self, files: Sequence[dict[str, Any]]) -> AbstractContextManager[CheckedFiles]:
        """Like `bring`, but never from a cache, and valid only within the context."""

    def listing(self) -> list[str] | None:
        """Paths of all files, sorted; None if the store cannot be listed."""


class LocalStore:
    """A folder on a file system: temporary name, fsync, rename."""

    look_every = 0.5

    def __init__(self, root: Path):
        self._root = root

    def __truediv__(self, path: str) -> Path:
        """See `Store`."""
        return self._root / path

    def check_writable(self) -> None:
        """See `Store`; never raises, as permissions only show on writing."""

    def names(self) -> list[str]:
        """See `Store`; empty if there is no folder yet. Raises `ShardError` for a file."""
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
        """See `Store`; on the same file system, so that files can be moved into place."""
        return staging_folder(self._root)

    def publish(self, staged: Path, path: str) -> None:
        """See `Store`."""
        publish_files(staged, self._root / path)

    def bring(self, files: Sequence[dict[str, Any]]) -> CheckedFiles:
        """See `Store`; the files of the folder itself."""
        with told_as_shard_error(self._root):
            return check_files(self._root, files)

    @contextlib.contextmanager
    def fresh(self, files: Sequence[dict[str, Any]]) -> Iterator[CheckedFiles]:
        """See `Store`."""
        yield self.bring(files)

    def listing(self) -> list[str]:
        """See `Store`; symbolic links count as files, even those to folders.

        `os.walk` skips folders that another writer removes in the meantime.
        """
        found = []
        for folder, folders, files in os.walk(self._root):
            links = [name for name in folders if (Path(folder) / name).is_symlink()]
            found += [Path(folder) / name for name in files + links]
        return sorted(path.relative_to(self._root).as_posix() for path in found)

    def _exists(self, path: str, since: float | None) -> bool:
        try:
            # Allow a second, since the times of file systems are coarser than the clock's.
            return (self._root / path).stat().st_mtime >= (since or 0) - 1
        except FileNotFoundError:
            return False


def store_of(folder: "Path | Store") -> Store:
    """The store of a folder; a store is returned as is."""
    return LocalStore(folder) if isinstance(folder, Path) else folder


def folder_of(text: str | Path) -> "Path | Store":
    """`text` as a local folder or, if it is a URL, as a remote store.

    Raises `InputError` for an unsupported kind of URL, a URL with credentials, and the home of an
    unknown user.
    """
    if isinstance(text, Path) or "://" not in text:
        return from_home(text)
    from shard_io.remote import RemoteStore  # imported late, to keep the start fast without it

    return RemoteStore(text)


def local_folder(text: str) -> Path:
    """`text` as a local folder.

    Raises `ShardError` if it is a URL, and `InputError` for the home of an unknown user.
    """
    if "://" in text:
        raise ShardError(f"{text} is a URL; give a folder of this machine")
    return from_home(text)
