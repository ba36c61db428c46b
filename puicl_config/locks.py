"""File locks, on file systems that support them."""

import errno
import fcntl
import os
from pathlib import Path
from typing import IO

from puicl_config.errors import InputError

# Errors of file systems without locks (some network folders and containers).
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def open_lock(path: Path) -> IO[str]:
    """Open a lock file for reading and appending; it is created if needed, and never truncated.

    Raises `InputError` for a symbolic link: no writer makes any, and in a folder that comes from
    elsewhere (an unpacked archive, say) it could lead to any file, in which a holder would then
    write its name.
    """
    try:
        place = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise InputError(f"{path} is a symbolic link, which is no lock: remove it") from None
    return os.fdopen(place, "a+", encoding="utf-8")


def take_lock(file: IO | int, wait: bool) -> bool:
    """Take a file's exclusive lock, held until the file is closed.

    Returns False if the file system has no locks. Raises `BlockingIOError` if another process holds
    the lock and `wait` is false.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True
