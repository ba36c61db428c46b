"""Paths that begin at somebody's home folder."""

from pathlib import Path

from puicl_config.errors import InputError


def from_home(text: str | Path) -> Path:
    """`text` as a path, `~` and `~name` being home folders.

    Raises `InputError` where there is no such user.
    """
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InputError(f"{text}: there is no such home folder") from None
