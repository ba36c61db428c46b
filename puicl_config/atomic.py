"""Atomic writing of files: temporary name, fsync, rename."""

import errno
import os
import shutil
import uuid
from pathlib import Path

from puicl_config.errors import InputError


def write_atomically(path: Path, content: bytes, writer: str = "") -> None:
    """Write a file so that a reader sees either the old content or the new.

    A killed process leaves a temporary file `.NAME.HEX`, or `.NAME.WRITER.HEX` if `writer` is given
    (HEX: 32 hex digits); a process that is the only one to use a writer's name may remove these.
    Symbolic links are followed and the permissions of an existing file are kept. A pipe or device
    cannot be replaced, so it is written to directly. Raises `InputError` if the file's folder is
    missing, and `OSError` if writing fails.
    """
    path = path.resolve()
    there = path.exists()
    if there and not path.is_file():
        path.write_bytes(content)
        return
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to write {path.name} to")
    own = f"{writer}." if writer else ""
    temporary = path.with_name(f".{path.name}.{own}{uuid.uuid4().hex}")
    try:
        write_synced(temporary, content)
        if there:
            shutil.copymode(path, temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, if the system can sync folders.

    It cannot on Windows, on some network file systems, or if the folder may be written to but not
    read; this is not an error. Raises `OSError` if the disk fails.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS):
            raise
    finally:
        os.close(descriptor)


def write_synced(path: Path, content: bytes) -> None:
    """Write a file and make its bytes durable; this is not atomic."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
