"""Comparing folders byte by byte."""

from pathlib import Path


def folder_bytes(folder: Path) -> dict[str, bytes]:
    """Every file's content by its path within the folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def bytes_under(folder: Path, prefix: str) -> dict[str, bytes]:
    """The same, as the objects of a bucket would be called under a prefix."""
    return {prefix + path: content for path, content in folder_bytes(folder).items()}


def objects(bucket) -> dict[str, bytes]:
    """Every object's content by its key; `bucket` is a name and a file system that sees it."""
    name, files = bucket
    return {path.removeprefix(f"{name}/"): files.cat_file(path) for path in files.find(name)}
