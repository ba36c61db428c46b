"""Publishing on a file system: exclusive creation, private staging, files moved when synced."""

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

# A file in every private folder, locked while its owner lives.
LOCK = "lock"
# How file systems say that they have no second names for a file (exFAT, some network folders).
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sizes(folder: Path, files: Iterable[dict[str, Any]]) -> None:
    """Raise `ShardError` naming the first of an entry's files that is gone or of another size."""
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
    """An entry's files, hashed, to be read as they are now.

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
    """Create ROOT/NAME as a whole file, or return False and leave it alone where one exists."""
    with staging_folder(root) as staging:
        write_synced(staging / "content", content)
        try:
            os.link(staging / "content", root / name)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            # Here a kill at the wrong moment leaves a file cut short, which readers refuse.
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
    """Write ROOT/NAME so that a reader sees the old content or the new.

    Unlike `puicl_config.write_atomically`, a writer killed half way leaves nothing but staging.
    """
    target = root / name
    with staging_folder(root) as staging:
        write_synced(staging / "content", content)
        target.parent.mkdir(exist_ok=True)
        (staging / "content").replace(target)
    _sync_folders([target], root)


@contextlib.contextmanager
def staging_folder(root: Path) -> Iterator[Path]:
    """A private folder under ROOT/.staging, gone afterwards.

    It is locked while its owner lives, so that `sweep_staging` can tell a dead writer's leavings
    from a live writer's work.
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
    """Remove what writers that were killed left in ROOT/.staging.

    No link is followed, which no writer makes: a folder that somebody else has packed could have
    one that leads anywhere.
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
            # Already gone, or its owner is between two steps; a dead owner's folder is empty.
            with contextlib.suppress(OSError):
                folder.rmdir()
        except OSError:
            continue  # its owner is alive, or this file system keeps no locks
    with contextlib.suppress(OSError):
        (root / STAGING).rmdir()


def _locked_folder(staging: Path) -> tuple[Path, IO[str]]:
    """A new folder and its lock, taken. Another process may sweep at any of these steps."""
    for patience in reversed(range(100)):
        folder = staging / uuid.uuid4().hex
        try:
            folder.mkdir(parents=True)
            lock = (folder / LOCK).open("w")
        except (FileNotFoundError, FileExistsError):  # the latter: gone when looked at again
            if not patience:
                raise
            continue  # what was empty a moment ago has been swept
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            return folder, lock  # no locks on this file system: nor will anybody sweep
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat()):
                return folder, lock
        lock.close()
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(staging))


def _remove(folder: Path) -> None:
    """Remove a folder whose lock is held, the lock last: killed meanwhile, it can be swept."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink(missing_ok=True)
    (folder / LOCK).unlink()
    folder.rmdir()


def publish_files(source: Path, target: Path) -> list[Path]:
    """Move every file under `source` to the same place under `target`, synced, one by one.

    Durable afterwards are the names that lead to them, too, from the folder that `target` lies in.
    Files that stand there already are replaced: what a killed writer left, or another writer's
    equal bytes. Returns the paths relative to `target`, sorted.
    """
    relative = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    for path in relative:
        _sync(source / path)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).replace(target / path)
    _sync_folders([target / path for path in relative], target.parent)
    return relative


def _sync_folders(paths: Iterable[Path], root: Path) -> None:
    """Make the names durable that lead from ROOT to `paths`: any of the folders may be new."""
    above = {folder for path in paths for folder in path.parents if folder.is_relative_to(root)}
    for folder in sorted(above, reverse=True):
        sync_folder(folder)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
