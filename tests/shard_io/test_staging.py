"""Private folders of writers: swept when their owner is dead, and only then."""

import errno
import fcntl
import os
import shutil
import threading
from pathlib import Path

import pytest

import shard_io.files as files
from shard_io.files import (
    LOCK,
    create_exclusively,
    publish_files,
    replace_whole,
    staging_folder,
    sweep_staging,
)
from shard_io.store import folder_of, store_of


def test_a_live_writers_folder_is_not_swept_and_is_gone_afterwards(tmp_path):
    with staging_folder(tmp_path) as folder:
        (folder / "half").write_text("half")
        sweep_staging(tmp_path)
        assert (folder / "half").read_text() == "half"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [[], [LOCK], [LOCK, "half"], [LOCK, "parts/deep/half"]])
def test_whatever_a_killed_writer_left_is_swept(tmp_path, left):
    dead = tmp_path / ".staging" / "dead"
    dead.mkdir(parents=True)
    for name in left:
        (dead / name).parent.mkdir(parents=True, exist_ok=True)
        (dead / name).write_text("")
    sweep_staging(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_live_writers_folder_keeps_no_dead_one_from_being_swept(tmp_path, monkeypatch):
    dead, iterdir = tmp_path / ".staging" / "dead", Path.iterdir
    with staging_folder(tmp_path) as live:
        dead.mkdir()
        (dead / LOCK).touch()
        monkeypatch.setattr(
            Path, "iterdir", lambda self: iter(sorted(iterdir(self), key=lambda path: path != live))
        )
        sweep_staging(tmp_path)
        assert live.is_dir()
        assert not dead.exists()


@pytest.mark.parametrize("link", [".staging", ".staging/dead"])
def test_a_sweep_follows_no_link_out_of_the_folder(tmp_path, link):
    elsewhere, shards = tmp_path / "elsewhere", tmp_path / "shards"
    work = elsewhere if link == ".staging/dead" else elsewhere / "work"
    for folder in (work, elsewhere / "empty", (shards / link).parent):
        folder.mkdir(parents=True, exist_ok=True)
    (work / LOCK).write_text("")
    (work / "thesis").write_text("years")
    (shards / link).symlink_to(elsewhere)
    sweep_staging(shards)
    assert (work / "thesis").read_text() == "years"
    assert (elsewhere / "empty").is_dir()


def test_a_sweep_between_creation_and_lock_takes_no_writer_its_folder(tmp_path, monkeypatch):
    real, sweeps = fcntl.flock, []

    def swept_just_before(lock, operation):
        if not operation & fcntl.LOCK_NB and len(sweeps) < 3:
            sweeps.append(operation)
            sweep_staging(tmp_path)
        return real(lock, operation)

    monkeypatch.setattr(files.fcntl, "flock", swept_just_before)
    with staging_folder(tmp_path) as folder:
        (folder / "content").write_text("whole")
    assert len(sweeps) == 3


def test_a_folder_that_is_removed_while_it_is_entered_is_made_again(tmp_path, monkeypatch):
    real, raced = files.Path.mkdir, []

    def raced_twice(self, *arguments, **options):
        if len(raced) < 2 and self.parent.name == ".staging":
            raced.append(self)
            raise FileNotFoundError(errno.ENOENT, "another writer removed .staging")
        return real(self, *arguments, **options)

    monkeypatch.setattr(files.Path, "mkdir", raced_twice)
    with staging_folder(tmp_path) as folder:
        assert folder.is_dir()
    assert len(raced) == 2


def test_a_writer_whose_folder_is_taken_away_again_and_again_gives_up(tmp_path, monkeypatch):
    def gone(self, **_):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    with monkeypatch.context() as patch:
        patch.setattr(files.Path, "mkdir", gone)
        with pytest.raises(FileNotFoundError), staging_folder(tmp_path):
            pass
    monkeypatch.setattr(files.os.path, "samestat", lambda *_: False)  # another's lock each time
    with pytest.raises(OSError, match="busy") as told, staging_folder(tmp_path):
        pass
    assert told.value.filename == str(tmp_path / ".staging")


def test_many_writers_and_sweepers_never_disturb_each_other(tmp_path):
    problems, over = [], threading.Event()

    def write():
        try:
            for _ in range(150):
                with staging_folder(tmp_path) as folder:
                    (folder / "content").write_text("whole")
                    assert (folder / "content").read_text() == "whole"
        except Exception as error:
            problems.append(error)

    def sweep():
        try:
            while not over.is_set():
                sweep_staging(tmp_path)
        except Exception as error:
            problems.append(error)

    sweeper = threading.Thread(target=sweep)
    writers = [threading.Thread(target=write) for _ in range(4)]
    for thread in (sweeper, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    sweeper.join()
    assert problems == []
    sweep_staging(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_is_written_to_and_never_swept(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(files.fcntl, "flock", no_locks)
    with staging_folder(tmp_path) as folder:
        (folder / "content").write_text("whole")
        sweep_staging(tmp_path)
        assert (folder / "content").read_text() == "whole"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_links_creates_exclusively_all_the_same(
    tmp_path, monkeypatch, number
):
    def no_links(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "link", no_links)
    assert create_exclusively(tmp_path, "manifest.json", b"first") is True
    assert create_exclusively(tmp_path, "manifest.json", b"second") is False
    assert (tmp_path / "manifest.json").read_bytes() == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_every_folder_that_leads_to_a_published_file_is_durable_before_its_entry(
    tmp_path, monkeypatch
):
    synced, real = [], files.sync_folder

    def noted(folder):
        synced.append(folder.relative_to(tmp_path).as_posix())
        real(folder)

    monkeypatch.setattr(files, "sync_folder", noted)
    with staging_folder(tmp_path) as staging:
        for path in ("one.zarr/zarr.json", "one.zarr/x/c/0", "two.zarr/y/c/0"):
            (staging / "parts" / path).parent.mkdir(parents=True, exist_ok=True)
            (staging / "parts" / path).write_text("whole")
        publish_files(staging / "parts", tmp_path / "parts")
    of_parts = ["one.zarr", "one.zarr/x", "one.zarr/x/c", "two.zarr", "two.zarr/y", "two.zarr/y/c"]
    assert sorted(synced) == [".", "parts", *(f"parts/{folder}" for folder in of_parts)]
    synced.clear()
    replace_whole(tmp_path, "entries/one.json", b"{}")
    assert synced == ["entries", "."]
    synced.clear()
    replace_whole(tmp_path, "manifest.json", b"{}")
    assert synced == ["."]


def test_a_listing_passes_over_what_another_writer_takes_away_meanwhile(tmp_path, monkeypatch):
    (tmp_path / "entries").mkdir()
    (tmp_path / "entries" / "a.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "entries")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    staging = tmp_path / ".staging" / "theirs"
    staging.mkdir(parents=True)
    scandir = os.scandir

    def vanishing(path="."):
        if not isinstance(path, int) and Path(path).name == "theirs":
            shutil.rmtree(staging, ignore_errors=True)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert folder_of(str(tmp_path)) == tmp_path
    assert store_of(tmp_path).listing() == ["entries/a.json", "gone", "link"]


def test_what_was_written_in_the_second_before_counts_as_written_since(tmp_path):
    """File systems keep coarser times than the clock."""
    (tmp_path / "a").touch()
    os.utime(tmp_path / "a", (100, 100))
    store = store_of(tmp_path)
    assert [store.present(["a"], since) for since in (None, 100.9, 101.1)] == [{"a"}, {"a"}, set()]


def test_a_file_is_replaced_and_never_written_over(tmp_path):
    manifest, before = tmp_path / "manifest.json", tmp_path / "before"
    manifest.write_bytes(b"old")
    before.hardlink_to(manifest)  # as a reader that has it open
    replace_whole(tmp_path, "manifest.json", b"new")
    assert (before.read_bytes(), manifest.read_bytes()) == (b"old", b"new")


@pytest.fixture
def deeds(monkeypatch):
    """What becomes durable and what gets its name, in order: [deed, inode]."""
    done, fsync, link, replace = [], os.fsync, os.link, os.replace

    def synced(descriptor):
        done.append(("synced", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def named(source, target, **options):
        done.append(("named", Path(source).stat().st_ino))
        (replace if options.pop("moved", False) else link)(source, target, **options)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", named)
    monkeypatch.setattr(os, "replace", lambda *paths: named(*paths, moved=True))
    return done


def test_without_links_a_full_disk_leaves_no_file_cut_short(tmp_path, monkeypatch):
    real, synced = os.fsync, []

    def full(descriptor):
        synced.append(descriptor)
        if len(synced) == 2:  # after the private copy
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        create_exclusively(tmp_path, "file", b"whole")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["replaced", "created", "published"])
def test_bytes_are_durable_before_they_have_their_name_and_the_name_is_afterwards(
    tmp_path, deeds, how
):
    if how == "replaced":
        replace_whole(tmp_path, "file", b"whole")
    elif how == "created":
        create_exclusively(tmp_path, "file", b"whole")
    else:
        with staging_folder(tmp_path) as staging:
            (staging / "file").write_bytes(b"whole")
            publish_files(staging, tmp_path / "parts")
    (path,) = tmp_path.rglob("file")
    file = path.stat().st_ino
    assert deeds.index(("synced", file)) < deeds.index(("named", file))
    assert deeds.index(("named", file)) < deeds.index(("synced", path.parent.stat().st_ino))


def test_without_links_bytes_and_name_are_durable_too(tmp_path, deeds, monkeypatch):
    def no_links(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    sizes, fsync = {}, os.fsync

    def sized(descriptor):
        sizes[os.fstat(descriptor).st_ino] = os.fstat(descriptor).st_size
        fsync(descriptor)

    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "fsync", sized)
    create_exclusively(tmp_path, "file", b"whole")
    assert sizes[(tmp_path / "file").stat().st_ino] == len(b"whole")
    wanted = [("synced", (tmp_path / "file").stat().st_ino), ("synced", tmp_path.stat().st_ino)]
    assert deeds[-2:] == wanted


def test_a_disk_that_fails_is_not_taken_for_one_without_links(tmp_path, monkeypatch):
    def failing(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", failing)
    with pytest.raises(OSError, match="Input/output"):
        create_exclusively(tmp_path, "file", b"whole")
    assert list(tmp_path.iterdir()) == []


def test_a_sweep_that_is_cut_short_leaves_what_the_next_one_can_sweep(tmp_path, monkeypatch):
    dead, unlink = tmp_path / ".staging" / "dead", Path.unlink
    dead.mkdir(parents=True)
    for name in (LOCK, "a", "z"):
        (dead / name).touch()

    def cut_short(self, **options):
        if self.name in ("a", "z"):
            raise OSError(errno.EIO, "Input/output error")
        unlink(self, **options)

    monkeypatch.setattr(Path, "unlink", cut_short)
    sweep_staging(tmp_path)
    assert dead.is_dir()
    monkeypatch.undo()
    sweep_staging(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_a_sweep_cannot_remove_yet_the_next_one_can(tmp_path, monkeypatch):
    """Such as a folder of a network file system in which somebody still has a file open."""
    dead, rmtree = tmp_path / ".staging" / "dead", shutil.rmtree
    (dead / "parts").mkdir(parents=True)
    for name in (LOCK, "parts/held"):
        (dead / name).touch()

    def busy(path, ignore_errors=False):
        if not ignore_errors:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(shutil, "rmtree", busy)
    sweep_staging(tmp_path)
    assert (dead / "parts" / "held").exists()
    monkeypatch.setattr(shutil, "rmtree", rmtree)
    sweep_staging(tmp_path)
    assert list(tmp_path.iterdir()) == []
