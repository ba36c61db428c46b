"""Publishing on a file system: exclusive creation, private staging, moving of synced files."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from puicl_config.atomic import sync_folder, write_synced
from shard_io.checked import CheckedFiles, seal_of
from shard_io.errors import ShardError, repairing
from shard_io.layout import STAGING

# A file in every private folder, locked while its owner is alive.
LOCK = "lock"
# Errors of file systems without hard links (exFAT, some network folders).
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sizes(folder: Path, files: Iterable[dict[str, Any]]) -> None:
    """Raise `ShardError` naming the first of an entry's files that is missing or of wrong size."""
    for file in files:
        path = folder / file["path"]
        if not path.is_file():
            raise ShardError(f"{path} is missing; {repairing(folder)} makes it again")
        size = path.stat().st_size
        if size != file["bytes"]:
            raise ShardError(
                f"{path} has {size} bytes instead of {file['bytes']}; "
                f"{repairing(folder)} makes it again"
            )


def check_files(folder: Path, files: Sequence[dict[str, Any]]) -> CheckedFiles:
    """Hash an entry's files and return them, sealed as they are now.

    Raises `ShardError` naming the first that is missing, truncated or altered.
    """
    check_sizes(folder, files)
    seals = {file["path"]: seal_of(folder / file["path"]) for file in files}
    checked = CheckedFiles(folder, seals)
    for file in files:
        if seals[file["path"]].sha256 != file["sha256"]:
            raise ShardError(f"{folder / file['path']} does not match its SHA-256; {checked.mend}")
    return checked


def create_exclusively(root: Path, name: str, content: bytes) -> bool:
    """Create ROOT/NAME as a whole file; if it exists, leave it alone and return False."""
    with staging_folder(root) as staging:
        write_synced(staging / "content", content)
        try:
            os.link(staging / "content", root / name)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # A kill during this fallback leaves a truncated file, which readers refuse.
            try:
                file = (root / name).open("xb")
            except FileExistsError:
                return False
            try:
                with file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError:
                (root / name).unlink(missing_ok=True)
                raise
    sync_folder(root)
    return True


def replace_whole(root: Path, name: str, content: bytes) -> None:
    """Write ROOT/NAME so that a reader sees either the old content or the new.

    Unlike with `puicl_config.write_atomically`, a killed writer leaves files only in staging.
    """
    target = root / name
    with staging_folder(root) as staging:
        write_synced(staging / "content", content)
        target.parent.mkdir(exist_ok=True)
        (staging / "content").replace(target)
    _sync_folders([target], root)


@contextlib.contextmanager
def staging_folder(root: Path) -> Iterator[Path]:
    """A private folder under ROOT/.staging, which is removed afterwards.

    It is locked while its owner is alive, so that `sweep_staging` can distinguish what a dead
    writer left from a live writer's work.
    """
    folder, lock = _locked_folder(root / STAGING)
    with lock:
        try:
            yield folder
        finally:
            with contextlib.suppress(OSError):
                _remove(folder)
                folder.parent.rmdir()


def sweep_staging(root: Path) -> None:
    """Remove what killed writers left in ROOT/.staging.

    Symbolic links are not followed. No writer makes any, so a link comes from elsewhere (an
    unpacked archive, say) and could lead anywhere.
    """
    if (root / STAGING).is_symlink():
        return
    try:
        folders = [path for path in (root / STAGING).iterdir() if not path.is_symlink()]
    except FileNotFoundError:
        return
    for folder in folders:
        try:
            with (folder / LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
        except FileNotFoundError:
            # Gone already, or without a lock: its owner will make one, or died before it did.
            with contextlib.suppress(OSError):
                folder.rmdir()
        except OSError:
            continue  # its owner is alive, or this file system has no locks
    with contextlib.suppress(OSError):
        (root / STAGING).rmdir()


def _locked_folder(staging: Path) -> tuple[Path, IO[str]]:
    """Make a new folder and take its lock. Another process may sweep between any two steps."""
    for patience in reversed(range(100)):
        folder = staging / uuid.uuid4().hex
        try:
            folder.mkdir(parents=True)
            lock = (folder / LOCK).open("w")
        except (FileNotFoundError, FileExistsError):  # mkdir may raise either if a parent vanishes
            if not patience:
                raise
            continue  # another process swept a folder while it was empty
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            return folder, lock  # without locks on this file system, nobody sweeps either
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat()):
                return folder, lock
        lock.close()
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(staging))


def _remove(folder: Path) -> None:
    """Remove a folder whose lock is held; the lock goes last, so that a sweep can finish this."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)
    (folder / LOCK).unlink()
    folder.rmdir()


def publish_files(source: Path, target: Path) -> None:
    """Sync every file under `source` and move it to the same place under `target`, one by one.

    Afterwards, the names that lead to the files are durable, too, from the parent of `target` down.
    Existing files are replaced: a killed writer left them, or another writer wrote the same bytes.
    """
    relative = [path.relative_to(source) for path in source.rglob("*") if path.is_file()]
    for path in relative:
        _sync(source / path)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).replace(target / path)
    _sync_folders([target / path for path in relative], target.parent)


def _sync_folders(paths: Iterable[Path], root: Path) -> None:
    """Make the names from ROOT to `paths` durable, since any of the folders may be new."""
    above = {folder for path in paths for folder in path.parents if folder.is_relative_to(root)}
    for folder in sorted(above, reverse=True):
        sync_folder(folder)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
