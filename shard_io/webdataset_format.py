"""A part as a webdataset tar: one sample a microbatch, members `.x.npy`, `.y.npy`, `.json`."""

import io
import json
import tarfile
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from puicl_config import ShardsConfig, canonical_json
from shard_io.errors import ShardError
from shard_io.microbatch import Microbatch


def write_webdataset(path: Path, microbatches: Sequence[Microbatch], storage: ShardsConfig) -> None:
    """Write a part to the file `path`; modification times, owner and mode are fixed."""
    # Imported here: it pulls in torch, which costs every worker of a zarr run seconds.
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
    """Random access to the microbatches of one tar: its members are uncompressed."""

    def __init__(self, path: Path):
        self._path = path
        self._lock = threading.Lock()
        self._tar = tarfile.open(path, mode="r:")  # noqa: SIM115 (closed with the part)
        members = self._tar.getmembers()
        self._samples: dict[str, dict[str, tarfile.TarInfo]] = {}
        for member in members:
            key, _, extension = member.name.partition(".")
            self._samples.setdefault(key, {})[extension] = member
        # As written, in the plan's order: as text, a step's microbatch 1000 would precede 999.
        self._keys = list(self._samples)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, position: int) -> Microbatch:
        return Microbatch(
            x=np.load(io.BytesIO(self._read(position, "x.npy")), allow_pickle=False),
            y=np.load(io.BytesIO(self._read(position, "y.npy")), allow_pickle=False),
            tags=self.tags(position),
        )

    def tags(self, position: int) -> dict:
        """The microbatch's tags without its arrays."""
        return json.loads(self._read(position, "json"))

    @property
    def x_dtype(self) -> str:
        """Name of the dtype that x is stored in, by the first microbatch."""
        return self[0].x.dtype.name

    def _read(self, position: int, extension: str) -> bytes:
        member = self._samples[self._keys[position]][extension]
        with self._lock:  # one file handle, several loader threads
            file = self._tar.extractfile(member)
            if file is None:
                raise ShardError(f"{self._path}: {member.name} is no file")
            return file.read()


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()
