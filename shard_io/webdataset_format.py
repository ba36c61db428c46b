"""A part as a webdataset tar: one sample per microbatch, members `.x.npy`, `.y.npy`, `.json`."""

import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from puicl_config import ShardsConfig, canonical_json
from shard_io.checked import CheckedFiles, CheckedStream
from shard_io.errors import ShardError
from shard_io.microbatch import Microbatch, tags_of


def write_webdataset(path: Path, microbatches: Sequence[Microbatch], storage: ShardsConfig) -> None:
    """Write a part to the file `path`; modification times, owner and mode are fixed."""
    # Imported here, since it imports torch, which would cost every worker of a zarr run seconds.
    import webdataset

    with (
        path.open("wb") as file,
        webdataset.TarWriter(file, encoder=False, mtime=0, user="puicl", group="puicl") as tar,
    ):
        for batch in microbatches:
            stage, step, index = batch.address
            tar.write(
                {
                    "__key__": f"stage-{stage:04d}-step-{step:06d}-index-{index:03d}",
                    "json": canonical_json(batch.tags).encode(),
                    "x.npy": _npy(batch.x),
                    "y.npy": _npy(batch.y),
                }
            )


class WebdatasetPart:
    """Random access to the microbatches of one uncompressed tar."""

    def __init__(self, path: Path, files: CheckedFiles | None = None):
        self._path, self._files = path, files or CheckedFiles(path.parent)
        self._file = self._files.open(path)
        with (
            self._files.decoding(path),
            tarfile.open(fileobj=io.BufferedReader(CheckedStream(self._file)), mode="r:") as tar,
        ):
            members = tar.getmembers()
        self._samples: dict[str, dict[str, tarfile.TarInfo]] = {}
        for member in members:
            key, _, extension = member.name.partition(".")
            self._samples.setdefault(key, {})[extension] = member
        # In the order of writing, which is the plan's; sorted as text, 1000 would precede 999.
        self._keys = list(self._samples)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, position: int) -> Microbatch:
        with self._files.decoding(self._path):
            key = self._keys[position]
            return Microbatch(
                x=_array(self._read(key, "x.npy")),
                y=_array(self._read(key, "y.npy")),
                tags=tags_of(json.loads(self._read(key, "json"))),
            )

    def tags(self, position: int) -> dict:
        """The microbatch's tags without its arrays."""
        with self._files.decoding(self._path):
            return tags_of(json.loads(self._read(self._keys[position], "json")))

    @property
    def x_dtype(self) -> str:
        """Name of the dtype of x, according to the first microbatch."""
        return self[0].x.dtype.name

    def _read(self, key: str, extension: str) -> bytes:
        member = self._samples[key][extension]
        if not member.isreg() or member.issparse():
            raise ShardError(
                f"{self._path}: {member.name} is not a regular file; {self._files.mend}"
            )
        return self._file.read(member.offset_data, member.size).tobytes()


def _array(content: bytes) -> np.ndarray:
    # Not `np.load`, which would also open an archive of arrays.
    return np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
