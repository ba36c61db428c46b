"""Paths that begin with a home folder."""

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
