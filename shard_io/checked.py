"""Files that are hashed once and read piece by piece later.

While a file is hashed, a checksum of each of its blocks is kept. Every later read, even by a part
that was opened again, compares the checksums of the blocks it touches. Bytes that were altered in
the meantime are never returned.
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
_PIECE = 16 * _BLOCK  # bytes read at once for hashing
# The compiled version is seven times as fast as zlib's. Checksums never leave the process and its
# workers, so they need not be the same everywhere.
_checksum: Callable[[Any], int] = (
    google_crc32c.value if google_crc32c.implementation == "c" else zlib.crc32
)
# Exceptions that libraries raise on bytes that they cannot decode.
_UNREADABLE = (
    *(RuntimeError, ValueError, TypeError, LookupError, EOFError, ArithmeticError),
    *(struct.error, tarfile.TarError, zlib.error),
)


@dataclass(frozen=True)
class Seal:
    """A file as it was hashed: size in bytes, SHA-256, and a checksum of each block.

    The last block may be short.
    """

    size: int
    sha256: str
    blocks: array.array


def seal_of(path: Path) -> Seal:
    """Hash a file in one pass over its bytes."""
    digest, blocks, size = hashlib.sha256(), array.array("I"), 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            # Complete a short read, since it would shift all later blocks.
            while len(piece) % _BLOCK and (more := file.read(_PIECE - len(piece))):
                piece += more
            digest.update(piece)
            cells = np.frombuffer(piece, np.uint8)
            blocks.extend(_checksum(cells[n : n + _BLOCK]) for n in range(0, len(piece), _BLOCK))
            size += len(piece)
    return Seal(size, digest.hexdigest(), blocks)


class CheckedFiles:
    """Files of one part in a local folder, checked against their seals on every read.

    `seals` maps paths relative to `root` to seals; if it is None, nothing is checked. `mend` is the
    end of an error message on a damaged file.
    """

    def __init__(self, root: Path, seals: Mapping[str, Seal] | None = None, mend: str = ""):
        self.root, self.seals = root, seals
        self.mend = mend or f"{repairing(root)} makes it again"

    def open(self, path: Path) -> "CheckedFile":
        """Open a file below the root; raises `ShardError` if it is missing or has no seal."""
        seal = None
        if self.seals is not None:
            seal = self.seals.get(path.relative_to(self.root).as_posix())
            if seal is None:
                raise ShardError(f"{path} is not listed in its part's entry; {self.mend}")
        return CheckedFile(path, seal, self.mend)

    def content(self, path: Path) -> bytes:
        """All bytes of a file; raises `ShardError` if it is missing or altered."""
        with contextlib.closing(self.open(path)) as file:
            return file.read(0, file.size).tobytes()

    @contextlib.contextmanager
    def decoding(self, path: Path) -> Iterator[None]:
        """Turn a library's decoding errors into a `ShardError` that names `path`.

        A file that matches its hash can still be undecodable, if it was written so.
        """
        try:
            yield
        except ShardError:
            raise
        except MemoryError as error:  # damaged bytes may announce an array of any size
            raise ShardError(
                f"{path} announces more than this machine's memory holds; if it has memory to "
                f"spare, {self.mend}"
            ) from error
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
        """Read `size` bytes at `offset`, as uint8 [size].

        Raises `ShardError` if the file is too short or the bytes do not match the seal.
        """
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
                    raise self._altered(f"bytes from {first + start} on differ")
        return read[offset - first : offset - first + size]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _altered(self, how: str) -> ShardError:
        since = " since its SHA-256 was checked" if self._seal else ""
        return ShardError(f"{self._path} was altered{since}: {how}; {self._mend}")


class CheckedStream(io.RawIOBase):
    """A `CheckedFile` as a binary stream, for libraries that need one."""

    def __init__(self, file: CheckedFile):
        self._checked, self._place = file, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """The position, in bytes from the start."""
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position and return it, in bytes from the start."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._checked.size}[whence]
        self._place = max(start + offset, 0)
        return self._place

    def readinto(self, buffer) -> int:
        """Fill `buffer` as far as the file reaches; returns the number of bytes read."""
        view = memoryview(buffer).cast("B")
        size = min(len(view), max(self._checked.size - self._place, 0))
        if size:  # reading beyond the end gives nothing, and is not a sign of damage
            view[:size] = self._checked.read(self._place, size).data
            self._place += size
        return size
