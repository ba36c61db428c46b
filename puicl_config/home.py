"""Paths that begin with a home folder, or lead to what does not exist yet."""

import contextlib
from pathlib import Path

from puicl_config.errors import InputError


def from_home(text: str | Path) -> Path:
    """`text` as a path, with `~` and `~name` expanded to home folders.

    Raises `InputError` if there is no such user.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InputError(f"{text}: there is no such home folder") from None


def nearest_there(path: Path) -> Path:
    """The path itself if it exists, else the nearest folder above it that does.

    Raises `OSError` if nothing can have such a name, of which `Path.exists` says nothing from
    Python 3.14 on.
    """
    path = path.absolute()
    for place in (path, *path.parents):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            place.stat()
            return place
    raise FileNotFoundError(path)
