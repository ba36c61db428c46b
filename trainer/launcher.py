"""Which process started this one: looked up before PyTorch is imported, which takes seconds."""

import os

_HERE, _PARENT = os.getpid(), os.getppid()


def launcher() -> int:
    """The id of the process that started this one, also where it has ended since this import."""
    return _PARENT if os.getpid() == _HERE else os.getppid()
