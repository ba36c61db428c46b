"""What the system will not let anybody read is told in one sentence, by readers and by `verify`."""

import errno
import hashlib
import re

import pytest

from shard_io import (
    ManifestLost,
    PartId,
    ShardError,
    open_shards,
    told_as_shard_error,
    verify_part,
)
from shard_io.remote import RemoteStore

PART = PartId(2, 0)


def test_an_entry_that_cannot_be_read(own_shards):
    path = own_shards / PART.entry_path
    path.unlink()
    path.mkdir()
    told = f"{own_shards} cannot be used: is a directory at {path}"
    with pytest.raises(ShardError, match=f"^{re.escape(told)}$"):
        open_shards(own_shards)[2, 0, 0]
    assert verify_part(own_shards, PART) == told


def test_a_manifest_that_cannot_be_read(own_shards):
    path = own_shards / "manifest.json"
    path.unlink()
    path.mkdir()
    told = f"{path} cannot be read: Is a directory"
    with pytest.raises(ShardError, match=f"^{re.escape(told)}$") as refused:
        open_shards(own_shards)
    assert not isinstance(refused.value, ManifestLost)  # nobody knows what it says


def test_a_file_of_a_part_that_cannot_be_read(own_shards, monkeypatch):
    def forbidden(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    reader = open_shards(own_shards)
    monkeypatch.setattr("shard_io.files.seal_of", forbidden)
    with pytest.raises(
        ShardError, match=r"cannot be used: permission denied at .*stage-0002-part-000\.zarr"
    ):
        reader[2, 0, 0]


def test_a_cache_that_cannot_be_written_to(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("PUICL_CACHE", str(tmp_path / "file"))
    file = {"path": "parts/a.tar", "bytes": 0, "sha256": hashlib.sha256().hexdigest()}
    with pytest.raises(ShardError, match="file cannot be used: not a directory"):
        RemoteStore("s3://bucket/x").bring([file])


@pytest.mark.parametrize("error", [OSError(errno.EBADF, "no"), OSError("no")])
def test_what_no_user_can_mend_is_not_told_as_one_of_their_faults(error, tmp_path):
    with pytest.raises(OSError, match="no") as caught, told_as_shard_error(tmp_path):
        raise error
    assert caught.value is error
