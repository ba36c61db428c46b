"""The process that started this one, looked up before PyTorch's import, which takes seconds."""

import os

_HERE, _PARENT = os.getpid(), os.getppid()


def launcher() -> int:
    """Id of the process that started this one, even if it has ended since this import."""
    return _PARENT if os.getpid() == _HERE else os.getppid()
