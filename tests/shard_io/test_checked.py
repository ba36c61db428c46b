"""What is read of a sealed file is what was hashed: piece by piece, whatever the system hands out.

Blocks of 4 bytes stand for those of 32 KiB, which the small shards of tests do not fill.
"""

import io
import os
import struct
import tarfile
import zlib

import pytest

from shard_io import ShardError, checked
from shard_io.checked import CheckedFiles, CheckedStream, seal_of

CONTENT = bytes(range(1, 23))  # five blocks and a half


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(checked, "_BLOCK", 4)
    monkeypatch.setattr(checked, "_PIECE", 8)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    return tmp_path / "file"


def opened(path, seal):
    seals = None if seal is None else {path.name: seal}
    return CheckedFiles(path.parent, seals).open(path)


@pytest.mark.parametrize("sealed", [True, False])
def test_any_piece_is_read_and_none_beyond_the_end(path, sealed):
    file = opened(path, seal_of(path) if sealed else None)
    for start in range(len(CONTENT) + 1):
        for end in range(start, len(CONTENT) + 1):
            assert file.read(start, end - start).tobytes() == CONTENT[start:end]
        with pytest.raises(ShardError, match="it ends before byte 23"):
            file.read(start, 23 - start)
    with pytest.raises(ShardError, match="was altered"):
        file.read(-1, 1)


def test_an_altered_byte_is_found_by_every_read_of_its_block_and_by_no_other(path):
    file = opened(path, seal_of(path))
    for place in range(len(CONTENT)):
        path.write_bytes(CONTENT[:place] + b"\0" + CONTENT[place + 1 :])
        for other in range(len(CONTENT)):
            if other // 4 != place // 4:
                assert file.read(other, 1)[0] == CONTENT[other]
                continue
            with pytest.raises(ShardError, match=rf"since its .* from {place // 4 * 4} on diff"):
                file.read(other, 1)
        with pytest.raises(ShardError, match="on differ"):
            file.read(0, len(CONTENT))


def test_a_system_that_hands_out_less_than_was_asked_for_changes_nothing(path, monkeypatch):
    whole, preadv = seal_of(path), os.preadv

    class Sparing(io.FileIO):
        def read(self, size=-1):
            return super().read(min(size, 3))

    class SparingPath:
        def open(self, *_, **__):
            return Sparing(path)

    assert seal_of(SparingPath()) == whole
    monkeypatch.setattr(os, "preadv", lambda f, buffers, at: preadv(f, [buffers[0][:3]], at))
    assert opened(path, whole).read(1, 20).tobytes() == CONTENT[1:21]


def test_a_file_that_no_entry_names_is_not_read(path):
    """Data beside a part's own: an entry may leave out what it should have hashed."""
    files = CheckedFiles(path.parent, {"other": seal_of(path)})
    with pytest.raises(ShardError, match=r"file is not listed in its part's entry; .*repair"):
        files.open(path)


def test_what_was_found_altered_is_not_told_as_what_cannot_be_decoded(path):
    seal = seal_of(path)
    path.write_bytes(CONTENT[::-1])
    files = CheckedFiles(path.parent, {path.name: seal})
    with pytest.raises(ShardError, match=r"^\S+file was altered since"), files.decoding(path):
        files.content(path)
    with pytest.raises(ShardError, match=r"file cannot be decoded \(no\); "), files.decoding(path):
        raise ValueError("no")


@pytest.mark.parametrize(
    "kind",
    [RuntimeError, KeyError, EOFError, OverflowError, struct.error, tarfile.ReadError, zlib.error],
)
def test_whatever_a_library_says_of_bytes_it_cannot_decode_is_one_sentence(path, kind):
    files = CheckedFiles(path.parent)
    for words, said in (((), kind.__name__), (("odd\nbytes",), ".*odd.*bytes.*")):
        sentence = rf"file cannot be decoded \({said}\); "
        with pytest.raises(ShardError, match=sentence) as told, files.decoding(path):
            raise kind(*words)
        assert "\n" not in str(told.value)


def test_a_stream_moves_and_reads_as_one_of_bytes_does(path):
    ours, theirs = CheckedStream(opened(path, seal_of(path))), io.BytesIO(CONTENT)
    assert ours.readable()
    assert ours.seekable()
    for place, whence in ((3, 0), (2, 1), (-4, 2), (0, 2), (5, 1), (0, 0), (30, 0), (20, 0)):
        assert ours.seek(place, whence) == theirs.seek(place, whence)
        assert ours.read(4) == theirs.read(4)
        assert ours.tell() == theirs.tell()
    assert ours.seek(-40, os.SEEK_CUR) == 0
