"""Files that were hashed once and are read piece by piece, long after.

While a file is hashed, a checksum of each of its blocks is kept; every later read, also by a part
that is opened anew, compares the blocks it touches. What was altered meanwhile is never returned.
"""

import array
import contextlib
import hashlib
import io
import os
import struct
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from shard_io.errors import ShardError, repairing

_BLOCK = 1 << 15
_PIECE = 16 * _BLOCK  # read at once to be hashed
# Seven times as fast as zlib's where it is compiled; the sums never leave the process.
_checksum: Callable[[Any], int] = (
    google_crc32c.value if google_crc32c.implementation == "c" else zlib.crc32
)
# What libraries say of bytes that they cannot decode.
_UNREADABLE = (
    *(RuntimeError, ValueError, TypeError, LookupError, EOFError, ArithmeticError),
    *(struct.error, tarfile.TarError, zlib.error),
)


@dataclass(frozen=True)
class Seal:
    """A file as it was hashed: bytes, SHA-256, and a checksum of each block, the last one short."""

    size: int
    sha256: str
    blocks: array.array


def seal_of(path: Path) -> Seal:
    """Hash a file, in one pass over its bytes."""
    digest, blocks, size = hashlib.sha256(), array.array("I"), 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            # A short read that is not the last would shift the blocks.
            while len(piece) % _BLOCK and (more := file.read(_PIECE - len(piece))):
                piece += more
            digest.update(piece)
            cells = np.frombuffer(piece, np.uint8)
            blocks.extend(_checksum(cells[n : n + _BLOCK]) for n in range(0, len(piece), _BLOCK))
            size += len(piece)
    return Seal(size, digest.hexdigest(), blocks)


class CheckedFiles:
    """Files of one part in a folder of this machine, to be read as they were sealed.

    `seals` are by path relative to `root`; where there are none, nothing is compared. `mend` ends
    a sentence on a damaged file.
    """

    def __init__(self, root: Path, seals: Mapping[str, Seal] | None = None, mend: str = ""):
        self.root, self.seals = root, seals
        self.mend = mend or f"{repairing(root)} makes it again"

    def open(self, path: Path) -> "CheckedFile":
        """A file at `path`, below the root; raises `ShardError` where it is gone."""
        seal = None
        if self.seals is not None:
            seal = self.seals.get(path.relative_to(self.root).as_posix())
            if seal is None:
                raise ShardError(f"{path} is no file of its part's entry; {self.mend}")
        return CheckedFile(path, seal, self.mend)

    def content(self, path: Path) -> bytes:
        """All bytes of a file."""
        with contextlib.closing(self.open(path)) as file:
            return file.read(0, file.size).tobytes()

    @contextlib.contextmanager
    def decoding(self, path: Path) -> Iterator[None]:
        """Tell what a library says of bytes it cannot decode as a `ShardError` that names `path`.

        Whole files may say nonsense, where whoever wrote them did.
        """
        try:
            yield
        except ShardError:
            raise
        except _UNREADABLE as error:
            said = " ".join(str(error).split()) or type(error).__name__
            raise ShardError(f"{path} cannot be decoded ({said}); {self.mend}") from error


class CheckedFile:
    """Random access to one file, safe to use from several threads."""

    def __init__(self, path: Path, seal: Seal | None, mend: str):
        self._path, self._seal, self._mend = path, seal, mend
        try:
            self._file = path.open("rb", buffering=0)  # closed with its owner
        except FileNotFoundError:
            raise ShardError(f"{path} is missing; {mend}") from None
        self.size = seal.size if seal else os.fstat(self._file.fileno()).st_size

    def read(self, offset: int, size: int) -> np.ndarray:
        """`size` bytes from `offset`, as uint8; raises `ShardError` unless they are as sealed."""
        if not 0 <= offset <= offset + size <= self.size:
            raise self._altered(f"it ends before byte {offset + size}")
        if self._seal is None:
            first, end = offset, offset + size
        else:
            first = offset - offset % _BLOCK
            end = min(-(-(offset + size) // _BLOCK) * _BLOCK, self.size)
        read = np.empty(end - first, np.uint8)
        n_read = 0
        while n_read < len(read):
            n_more = os.preadv(self._file.fileno(), [read[n_read:].data], first + n_read)
            if not n_more:
                raise self._altered(f"it ends at byte {first + n_read}")
            n_read += n_more
        if self._seal is not None:
            blocks = self._seal.blocks[first // _BLOCK : -(-end // _BLOCK)]
            for start, block in zip(range(0, len(read), _BLOCK), blocks, strict=True):
                if _checksum(read[start : start + _BLOCK]) != block:
                    raise self._altered(f"bytes from {first + start} on are others")
        return read[offset - first : offset - first + size]

    def close(self) -> None:
        """Give the file back."""
        self._file.close()

    def _altered(self, how: str) -> ShardError:
        since = " since its SHA-256 was checked" if self._seal else ""
        return ShardError(f"{self._path} was altered{since}: {how}; {self._mend}")


class CheckedStream(io.RawIOBase):
    """A `CheckedFile` as a stream, for libraries that want one."""

    def __init__(self, file: CheckedFile):
        self._checked, self._place = file, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def tell(self) -> int:
        """Bytes from the start."""
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte; returns which."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._checked.size}[whence]
        self._place = max(start + offset, 0)
        return self._place

    def readinto(self, buffer) -> int:
        """Fill `buffer` as far as the file reaches; returns the bytes read."""
        view = memoryview(buffer).cast("B")
        size = min(len(view), max(self._checked.size - self._place, 0))
        if size:  # beyond the end there is nothing, which is no damage
            view[:size] = self._checked.read(self._place, size).data
            self._place += size
        return size
