"""Comparing folders byte by byte."""

from pathlib import Path


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Every file's content by its path within the folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
