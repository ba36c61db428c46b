"""Writing a file whole, and what is said where it cannot be."""

import errno
import os
import re
import stat
from pathlib import Path

import pytest

from puicl_config import InputError, write_atomically


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "a.txt"
    for content in (b"one", b"another"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_stays_open(tmp_path):
    def next_descriptor():
        with Path(os.devnull).open() as file:
            return file.fileno()

    before = next_descriptor()
    write_atomically(tmp_path / "a.txt", b"some")
    assert next_descriptor() == before


def test_a_file_is_renamed_once_its_bytes_are_durable_and_then_its_name_is(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        about = os.fstat(descriptor)
        done.append((about.st_ino, about.st_size if stat.S_ISREG(about.st_mode) else None))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", lambda *a, **b: done.append("renamed") or replace(*a, **b))
    path = tmp_path / "a.txt"
    write_atomically(path, b"some")
    assert done == [(path.stat().st_ino, 4), "renamed", (tmp_path.stat().st_ino, None)]


def test_what_a_killed_writer_leaves_is_hidden_and_has_its_name(tmp_path, monkeypatch):
    left, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: left.append(Path(a).name) or replace(a, b))
    for writer in ("", "", "me"):
        write_atomically(tmp_path / "a.txt", b"some", writer)
    assert left[0] != left[1]
    assert re.fullmatch(r"\.a\.txt\.[0-9a-f]{32}", left[0])
    assert re.fullmatch(r"\.a\.txt\.me\.[0-9a-f]{32}", left[2])


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*/nowhere to write a\.txt to"):
        write_atomically(tmp_path / "nowhere" / "a.txt", b"")


@pytest.mark.parametrize(
    ("where", "number", "told"),
    [
        ("open", errno.EACCES, False),  # Windows; a folder that may not be read
        ("open", errno.EMFILE, True),
        ("fsync", errno.ENOTSUP, False),
        ("fsync", errno.ENOSYS, False),
        ("fsync", errno.EINVAL, False),  # file systems that do not sync folders
        ("fsync", errno.EIO, True),
    ],
)
def test_a_folder_that_cannot_be_synced_is_no_error_and_a_failing_disk_is(
    tmp_path, monkeypatch, where, number, told
):
    whole = getattr(os, where)

    def failing(what, *rest, **options):
        if Path(what if where == "open" else f"/proc/self/fd/{what}").is_dir():
            raise OSError(number, os.strerror(number))
        return whole(what, *rest, **options)

    monkeypatch.setattr(os, where, failing)
    path = tmp_path / "a.txt"
    if told:
        with pytest.raises(OSError, match=os.strerror(number)):
            write_atomically(path, b"one")
    else:
        write_atomically(path, b"one")
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("old", [b"old", None])
def test_a_disk_that_fails_half_way_leaves_the_old_file_and_nothing_beside_it(
    tmp_path, monkeypatch, old
):
    path = tmp_path / "a.txt"
    if old is not None:
        path.write_bytes(old)

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == (
        {} if old is None else {"a.txt": old}
    )
