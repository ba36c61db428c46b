"""File locks, on file systems that support them."""

import errno
import fcntl
from typing import IO

# Errors of file systems without locks (some network folders and containers).
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


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
