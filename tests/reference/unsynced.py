"""Files of tests outlive their process, as all files do, but need not outlive a power cut.

A folder of the smallest plan waits 229 times for the disk, which takes longer than making it. That
files are synced, and in which order, is seen by tests that look at what is asked of `os.fsync`.
"""

import os
import stat

_fsync = os.fsync


def leave_files_unsynced() -> None:
    """Have this process, and the copies of it, wait for no disk."""
    os.fsync = _checked


def _checked(descriptor: int) -> None:
    """As `os.fsync` is for all that is no file or folder, and for what is not open."""
    mode = os.fstat(descriptor).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        _fsync(descriptor)
