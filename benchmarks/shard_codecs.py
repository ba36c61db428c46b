"""Bytes per task, packing and reading speed of candidate codecs, on the paper's last stages.

Prints the tables of docs/shards.md. Everything runs on one thread and is timed by processor time,
so that other work on the machine does not count; only writing, which waits for the disk, is timed
by the wall clock. Codecs are those of zarr v3, run on chunks as `shard_io` cuts them. The second
table reads whole microbatches through `shard_io`, and with zarr alone, from files in the page
cache.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import zarr
from how_many import count
from numcodecs import GZip, Zstd
from numcodecs.blosc import Blosc

from prior_gen import generate_microbatch
from puicl_config import Config, ShardsConfig, load_config
from shard_io import PartId, publish_part
from shard_io.parts import open_part

_SHUFFLES = {"none": Blosc.NOSHUFFLE, "bytes": Blosc.SHUFFLE, "bits": Blosc.BITSHUFFLE}


def codecs(chunk_bytes: int) -> dict[str, object]:
    """Codecs by name. `whole`: a chunk is one Blosc block; otherwise Blosc chooses block sizes."""
    made: dict[str, object] = {"none": None}
    for compressor, level in (("lz4", 5), ("zstd", 1), ("zstd", 5)):
        for shuffle, number in _SHUFFLES.items():
            made[f"blosc {compressor} {level}, {shuffle}"] = Blosc(compressor, level, number)
    for level, shuffle in ((1, "bytes"), (1, "bits"), (3, "bytes"), (5, "bytes"), (9, "bytes")):
        made[f"blosc zstd {level}, {shuffle}, whole"] = Blosc(
            "zstd", level, _SHUFFLES[shuffle], chunk_bytes
        )
    made.update({f"zstd {level}": Zstd(level) for level in (1, 5)})
    made["gzip 1"] = GZip(1)
    return made


def measure(codec, chunks: list[np.ndarray]) -> tuple[int, float, float]:
    """Bytes of all chunks, and uncompressed megabytes per second of packing and unpacking."""
    raw = sum(chunk.nbytes for chunk in chunks) / 1e6
    start = time.process_time()
    packed = [chunk.tobytes() if codec is None else codec.encode(chunk) for chunk in chunks]
    packing = time.process_time() - start
    start = time.process_time()
    for chunk in packed:
        np.frombuffer(chunk, np.uint8).copy() if codec is None else codec.decode(chunk)
    unpacking = time.process_time() - start
    return sum(len(chunk) for chunk in packed), raw / packing, raw / unpacking


def main() -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--microbatches", type=count, default=60)
    asked = parser.parse_args().microbatches
    base = load_config("paper")
    stages = range(base.prior.total_stages - 30, base.prior.total_stages)
    tasks = asked * base.prior.tasks_per_microbatch

    print("| x as | codec | bytes a task | packs, MB/s | unpacks, MB/s |\n|---|---|---|---|---|")
    made = {}
    for dtype in ("float16", "float32"):
        storage = base.shards.model_copy(update={"x_dtype": dtype})
        config = Config(prior=base.prior, shards=storage)
        made[dtype] = [
            generate_microbatch(config, stages[n % 30], n // 30, 0) for n in range(asked)
        ]
        x = np.concatenate([batch.x.ravel() for batch in made[dtype]])
        chunks = [
            np.ascontiguousarray(x[first : first + storage.chunk_cells])
            for first in range(0, len(x), storage.chunk_cells)
        ]
        for name, codec in codecs(storage.chunk_cells * x.itemsize).items():
            size, packing, unpacking = measure(codec, chunks)
            print(f"| {dtype} | {name} | {size / tasks:,.0f} | {packing:,.0f} | {unpacking:,.0f} |")

    print(
        "\n| folder | bytes a task | written, us a task | opens, ms | read in order, MB/s | "
        "at random, MB/s | microbatches/s | zarr alone, MB/s |\n|---|---|---|---|---|---|---|---|"
    )
    for name, changed in (
        ("zarr", {}),
        ("zarr, float32", {"x_dtype": "float32"}),
        ("zarr, zstd 5 and bits", {"zstd_level": 5, "shuffle": "bits"}),
        ("webdataset", {"format": "webdataset"}),
        ("webdataset, float32", {"format": "webdataset", "x_dtype": "float32"}),
    ):
        storage = base.shards.model_copy(update=changed)
        print(f"| {name} | {_folder_row(storage, made[storage.x_dtype], tasks)} |")


def _folder_row(storage: ShardsConfig, microbatches, tasks: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder, part = Path(name), PartId(1, 0)
        publish_part(folder, PartId(2, 0), microbatches[:1], storage, plan=None)  # warm up
        start = time.perf_counter()
        entry = publish_part(folder, part, microbatches, storage, plan=None)
        writing = time.perf_counter() - start
        start = time.process_time()
        opened = open_part(folder, part, storage.format)
        opening = time.process_time() - start
        shuffled = np.random.default_rng(0).permutation(len(opened))
        speeds, per_second = [], 0.0
        for order in (range(len(opened)), shuffled):
            start = time.process_time()
            size = sum(opened[position].x.nbytes for position in order)
            seconds = time.process_time() - start
            speeds.append(size / 1e6 / seconds)
            per_second = per_second or len(opened) / seconds
        alone = "-"
        if storage.format == "zarr":
            flat = zarr.open_array(folder / part.data_path("zarr"), path="x", mode="r")
            start, first = time.process_time(), 0
            for batch in microbatches:
                flat[first : first + batch.x.size]
                first += batch.x.size
            alone = f"{size / 1e6 / (time.process_time() - start):,.0f}"
    return (
        f"{entry.n_bytes / tasks:,.0f} | {writing / tasks * 1e6:,.0f} | {opening * 1e3:,.1f} | "
        f"{speeds[0]:,.0f} | {speeds[1]:,.0f} | {per_second:,.0f} | {alone}"
    )


if __name__ == "__main__":
    main()
