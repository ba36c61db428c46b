"""A lock is held by one, and a file system that keeps none is told from a lock that is taken."""

import errno
import fcntl
import os
import stat

import pytest

from puicl_config import InputError
from puicl_config.locks import open_lock, take_lock


def test_a_lock_is_held_by_one_until_its_file_is_closed(tmp_path):
    path = tmp_path / "lock"
    with path.open("w") as one, path.open("w") as two:
        assert take_lock(one, wait=False) is True
        with pytest.raises(BlockingIOError):
            take_lock(two, wait=False)
        one.close()
        assert take_lock(two, wait=True) is True


def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_is_left_alone(tmp_path):
    (tmp_path / "precious").write_text("kept\n")
    for target in ("precious", "nothing"):
        lock = tmp_path / f"lock on {target}"
        lock.symlink_to(tmp_path / target)
        with pytest.raises(InputError, match="is a symbolic link, which is no lock: remove it"):
            open_lock(lock)
    assert (tmp_path / "precious").read_text() == "kept\n"
    assert not (tmp_path / "nothing").exists()


def test_a_lock_can_be_taken_by_whoever_may_write_here(tmp_path):
    before = os.umask(0o002)
    try:
        open_lock(tmp_path / "lock").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "lock").stat().st_mode) == 0o664


def test_what_two_write_into_a_lock_is_kept(tmp_path):
    path = tmp_path / "lock"
    path.write_text("before\n")
    with open_lock(path) as one, open_lock(path) as two:
        for name, file in (("one", one), ("two", two)):
            file.write(f"{name}\n")
            file.flush()
    assert path.read_text() == "before\none\ntwo\n"


def test_a_lock_that_cannot_be_opened_is_called_no_link(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_lock(tmp_path / "nowhere" / "lock")


@pytest.mark.parametrize(
    ("number", "kept"),
    [
        *((number, False) for number in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)),
        (errno.EIO, True),
    ],
)
def test_where_no_locks_are_kept_there_is_none_and_a_disk_that_fails_is_told(
    tmp_path, monkeypatch, number, kept
):
    def failing(*_):
        raise OSError(number, "no")

    monkeypatch.setattr(fcntl, "flock", failing)
    with (tmp_path / "lock").open("w") as file:
        if kept:
            with pytest.raises(OSError, match="no"):
                take_lock(file, wait=True)
        else:
            assert take_lock(file, wait=True) is False


def test_who_waits_waits_and_who_does_not_wait_does_not(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(fcntl, "flock", lambda _, how: asked.append(how))
    with (tmp_path / "lock").open("w") as file:
        take_lock(file, wait=True)
        take_lock(file, wait=False)
    assert asked == [fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB]
