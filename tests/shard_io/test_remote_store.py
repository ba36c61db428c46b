"""An object store's races and its cache's place, without a server."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from shard_io import ShardError, cache_folder, store_of
from shard_io.remote import RemoteStore


class Objects(dict):
    """An object store in memory, in which another writer may be `faster`."""

    faster: bytes | None = None

    def cat_file(self, path):
        if path not in self:
            raise FileNotFoundError(path)
        return self[path]

    def get_file(self, path, target):
        Path(target).write_bytes(self.cat_file(path))

    def find(self, path):
        return [key for key in self if key.startswith(path.rstrip("/") + "/")]

    def pipe_file(self, path, content, mode="overwrite"):
        if self.faster is not None:
            self[path] = self.faster
        if mode == "create" and (path in self or self.faster is None):
            raise OSError("refused")
        self[path] = content


@pytest.fixture
def objects(monkeypatch):
    objects = Objects()
    monkeypatch.setattr(RemoteStore, "_files", lambda self: objects)
    return objects


def test_whoever_creates_a_file_first_keeps_it(objects):
    objects.faster = b"theirs"
    assert RemoteStore("s3://bucket/x").create("manifest.json", b"ours") is False
    assert objects == {"bucket/x/manifest.json": b"theirs"}


def test_a_store_that_takes_nothing_is_not_taken_for_another_writer(objects):
    told = r"^s3://bucket/x/manifest.json cannot be written: OSError: refused$"
    with pytest.raises(ShardError, match=told):
        RemoteStore("s3://bucket/x/").create("manifest.json", b"ours")
    assert objects == {}


def test_of_what_lies_in_a_bucket_only_what_is_asked_for_is_present(objects):
    store = RemoteStore("s3://bucket/x")
    objects["bucket/x/notes.txt"] = objects["bucket/manifest.json"] = b""
    assert store.present(["manifest.json"]) == set()
    objects["bucket/x/manifest.json"] = b""
    assert store.present(["manifest.json", "entries/a.json"]) == {"manifest.json"}


def test_what_lies_in_no_folder_is_asked_for_without_a_list_of_all(objects, monkeypatch):
    objects["bucket/x/manifest.json"] = b""
    monkeypatch.setattr(Objects, "find", None)
    assert RemoteStore("s3://bucket/x").present(["manifest.json"]) == {"manifest.json"}


def test_what_a_killed_download_left_goes_after_a_day(objects, tmp_path):
    content = b"content"
    objects["bucket/x/a"] = content
    for name, age in ((".incoming-old", 90_000), (".incoming-new", 80_000)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    file = {"path": "a", "sha256": hashlib.sha256(content).hexdigest()}
    RemoteStore("s3://bucket/x")._download(file, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"a", ".incoming-new"}


def test_the_cache_lies_where_it_is_asked_for_or_where_caches_lie(monkeypatch, tmp_path):
    for name in ("PUICL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "puicl"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/puicl")
    monkeypatch.setenv("PUICL_CACHE", "/mine")
    assert cache_folder() == Path("/mine")


def test_what_is_far_away_is_looked_at_less_often(tmp_path):
    assert RemoteStore("s3://bucket").look_every > store_of(tmp_path).look_every > 0
