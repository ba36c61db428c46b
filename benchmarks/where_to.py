"""Check where scripts will write before they measure for minutes or hours."""

import tempfile
from pathlib import Path

from puicl_config import InputError


def output_file(path: Path, option: str = "--out") -> Path:
    """Return `path` if a file can be written there; else raise `InputError`."""
    if path.is_dir():
        raise InputError(f"{option} {path} is a folder; give a file")
    if not path.parent.is_dir():
        raise InputError(f"{option} {path}: there is no folder {path.parent}")
    _try_to_write(path.parent, path, option)
    return path


def output_folder(path: Path, option: str = "--out") -> Path:
    """Return the folder `path`, made if missing; raise `InputError` if it is not writable."""
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
