"""Locks on files, where the file system keeps any."""

import errno
import fcntl
from typing import IO

# How file systems say that they keep no locks (some network folders and containers).
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)


def take_lock(file: IO | int, wait: bool) -> bool:
    """Hold a file's lock for as long as it is open; False where the file system keeps none.

    Raises `BlockingIOError` where another process holds it and `wait` is false.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True
