"""Where scripts write, looked at before they measure for minutes or hours."""

import tempfile
from pathlib import Path

from puicl_config import InputError


def output_file(path: Path, option: str = "--out") -> Path:
    """`path`, where a file can be written there. Raises `InputError` where none can."""
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder; give a file")
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}")
    _try_to_write(path.parent, path, option)
    return path


def output_folder(path: Path, option: str = "--out") -> Path:
    """`path`, made unless it is there. Raises `InputError` where it cannot be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{option} {path} cannot be made: {error.strerror}") from None
    _try_to_write(path, path, option)
    return path


def _try_to_write(folder: Path, asked: Path, option: str) -> None:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(f"{option} {asked} cannot be written: {error.strerror}") from None
