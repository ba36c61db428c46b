"""Writing a file so that nobody ever sees half of it: temporary name, fsync, rename."""

import errno
import os
import shutil
import uuid
from pathlib import Path

from puicl_config.errors import InputError


def write_atomically(path: Path, content: bytes, writer: str = "") -> None:
    """Write a file so that a reader sees the old content, the new, or nothing in between.

    What a kill leaves is called `.NAME.` and 32 hex digits, before them `writer` and a dot where
    one is given: whoever alone writes under that name may sweep it. A link is followed and an old
    file's permissions are kept; what is no regular file (a pipe, a device) cannot be replaced, and
    is written to. Raises `InputError` where its folder is missing.
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
    """Make the names in a folder durable, where the system can do that to folders.

    Windows opens none, nor does anyone for those who may write there and not read; some network
    file systems sync none. A disk that fails is told, as an `OSError`.
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
    """Write a file and make its bytes durable; not atomic by itself."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
