"""A part as a zarr v3 group: flat x and y, each one shard file, and the tags as attributes."""

import functools
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import zarr
from zarr.codecs import BloscCodec
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from puicl_config import ShardsConfig
from shard_io.checked import CheckedFiles
from shard_io.errors import ShardError
from shard_io.microbatch import Microbatch, tags_of
from shard_io.zarr_chunks import ZarrChunks


def write_zarr(path: Path, microbatches: Sequence[Microbatch], storage: ShardsConfig) -> None:
    """Write a part to the folder `path`.

    Microbatch i is x[x_offset : x_offset + T * n * d] reshaped to [T, n, d], and likewise y to
    [T, n_u]; offsets, shapes and tags are in the group's attribute `microbatches`.
    """
    records, x_offset, y_offset = [], 0, 0
    for batch in microbatches:
        records.append(
            {
                "x_offset": x_offset,
                "x_shape": list(batch.x.shape),
                "y_offset": y_offset,
                "y_shape": list(batch.y.shape),
                # Sorted as in the other format, so that converted parts have the same bytes.
                "tags": dict(sorted(batch.tags.items())),
            }
        )
        x_offset += batch.x.size
        y_offset += batch.y.size
    group = zarr.create_group(path, zarr_format=3, attributes={"microbatches": records})
    for name, dtype in (("x", storage.x_dtype), ("y", "uint8")):
        flat = np.concatenate([getattr(batch, name).ravel() for batch in microbatches])
        n_chunks = -(-len(flat) // storage.chunk_cells)
        by_bits = storage.shuffle == "bits" or name == "y"
        array = group.create_array(
            name,
            shape=flat.shape,
            dtype=dtype,
            chunks=(storage.chunk_cells,),
            shards=(n_chunks * storage.chunk_cells,),
            compressors=BloscCodec(
                cname="zstd",
                clevel=storage.zstd_level,
                shuffle="bitshuffle" if by_bits else "shuffle",
                typesize=flat.itemsize,
                # One block per chunk lets zstd find repetitions across all of it. 0 lets Blosc
                # choose small blocks, as in folders older than the setting `shuffle`.
                blocksize=0 if by_bits else storage.chunk_cells * flat.itemsize,
            ),
            fill_value=0,
        )
        array[:] = flat


class ZarrPart:
    """Random access to the microbatches of one zarr part."""

    def __init__(self, path: Path, files: CheckedFiles | None = None):
        self._path, self._files = path, files or CheckedFiles(path)
        with self._files.decoding(path):
            about = json.loads(self._files.content(path / "zarr.json"))
            self._records = about["attributes"]["microbatches"]
            if not isinstance(self._records, list):
                raise ValueError("its microbatches are not a list")

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, position: int) -> Microbatch:
        with self._files.decoding(self._path):
            record = self._records[position]
            return Microbatch(
                x=_cut(self._x, record["x_offset"], record["x_shape"]),
                y=_cut(self._y, record["y_offset"], record["y_shape"]),
                tags=tags_of(record["tags"]),
            )

    def tags(self, position: int) -> dict:
        """The microbatch's tags without its arrays."""
        with self._files.decoding(self._path):
            return tags_of(self._records[position]["tags"])

    @property
    def x_dtype(self) -> str:
        """Name of the dtype of x, according to its metadata."""
        with self._files.decoding(self._path):
            return json.loads(self._files.content(self._path / "x" / "zarr.json"))["data_type"]

    # Opened on first access: if only tags are read from a URL, the arrays are not downloaded.
    @functools.cached_property
    def _x(self) -> ZarrChunks | zarr.Array:
        return _open_flat(self._path / "x", self._files)

    @functools.cached_property
    def _y(self) -> ZarrChunks | zarr.Array:
        return _open_flat(self._path / "y", self._files)


def _open_flat(path: Path, files: CheckedFiles) -> ZarrChunks | zarr.Array:
    try:
        return ZarrChunks(path, files)
    except ShardError:
        raise
    except ValueError:
        if files.seals is None:
            return zarr.open_array(path, mode="r", zarr_format=3)
    # zarr would read the files itself, unchecked, so it is given their checked bytes instead.
    as_buffer = default_buffer_prototype().buffer.from_bytes
    inside = {
        (files.root / name).relative_to(path).as_posix(): files.root / name
        for name in files.seals
        if (files.root / name).is_relative_to(path)
    }
    store = MemoryStore({name: as_buffer(files.content(file)) for name, file in inside.items()})
    return zarr.open_array(store, mode="r", zarr_format=3)


def _cut(flat: ZarrChunks | zarr.Array, offset: int, shape: list[int]) -> np.ndarray:
    return np.asarray(flat[offset : offset + int(np.prod(shape))]).reshape(shape)
