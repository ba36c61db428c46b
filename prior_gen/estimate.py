"""Estimates of what a run will make, before it starts: parts, tasks, bytes, time."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np

from prior_gen.factors import draw_factors
from prior_gen.microbatch import generate_microbatch
from puicl_config import Config, Split
from shard_io import Layout, Microbatch, PartEntry, PartId, publish_part

# `measure` generates no microbatches that have more cells than this on average.
_MOST_CELLS = 50_000_000
_SAMPLE = 400
_MADE = 16
_MADE_SECONDS = 10.0
# So many tasks take one core from half a second (paper.yaml) to four seconds (cpu_wide.yaml).
_WORTH_A_WORKER = 500
# Tags, offsets and headers of the storage format, per microbatch.
_OVERHEAD_BYTES = 2500


@dataclass(frozen=True)
class Estimate:
    """Estimated size of some parts.

    `parts`, `microbatches` and `tasks` are exact. `rows`, `cells` and `bytes` (uncompressed) are
    extrapolated from a sample.
    """

    parts: int
    microbatches: int
    tasks: int
    rows: float
    cells: float
    bytes: float


def worker_count(jobs: int | None, parts: int, tasks: int) -> int:
    """Number of worker processes for `tasks` in `parts` parts.

    That is `jobs` or, where None, one per core, but only as many as have enough work to make up for
    the seconds that starting them takes. Never more than there are parts.
    """
    return min(jobs or min(joblib.cpu_count(), 1 + tasks // _WORTH_A_WORKER), max(parts, 1))


def estimate(config: Config, parts: Sequence[PartId], split: Split) -> Estimate:
    """Estimate the size of `parts` from the shapes of a few hundred of their microbatches.

    Shapes are drawn exactly as the generator will draw them, but no data is generated.
    """
    addresses = _Addresses(config, parts)
    rows, cells, hidden = [], [], []
    for place in range(0, len(addresses), max(1, len(addresses) // _SAMPLE)):
        factors = draw_factors(config.prior, *addresses[place], split)
        n = factors.n_labeled + factors.n_unlabeled
        rows.append(n)
        cells.append(n * factors.n_features)
        hidden.append(factors.n_unlabeled)
    tasks = len(addresses) * config.prior.tasks_per_microbatch

    def total(values: list[int]) -> float:
        return float(np.mean(values)) * tasks if values else 0.0

    item = np.dtype(config.shards.x_dtype).itemsize
    return Estimate(
        parts=len(parts),
        microbatches=len(addresses),
        tasks=tasks,
        rows=total(rows),
        cells=total(cells),
        bytes=total(cells) * item + total(hidden) + len(addresses) * _OVERHEAD_BYTES,
    )


class _Addresses(Sequence[tuple[int, int, int]]):
    """Addresses (stage, step, index) of the microbatches of parts, computed when accessed."""

    def __init__(self, config: Config, parts: Sequence[PartId]):
        self._layout, self._parts = Layout(config.prior, config.shards.parts_per_stage), parts
        self._ends = np.cumsum([len(self._layout.span(part)) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._parts) else 0

    def __getitem__(self, place: int) -> tuple[int, int, int]:  # type: ignore[override]
        which = int(np.searchsorted(self._ends, place, side="right"))
        part = self._parts[which]
        number = self._layout.span(part)[place - int(self._ends[which])]
        return self._layout.address(part.stage, number)


@dataclass(frozen=True)
class Cost:
    """Cost extrapolated from `sampled` microbatches: seconds of one worker and bytes on disk."""

    sampled: int
    seconds: float
    bytes: float


def measure(config: Config, parts: Sequence[PartId], split: Split, size: Estimate) -> Cost | None:
    """Measure what `parts` will cost by making a few of their microbatches as a worker does.

    `parts` must not be empty. `size` is their estimate; seconds and bytes are scaled by its cells.
    This takes about ten seconds at most, and what it writes is deleted afterwards. Returns None if
    microbatches have so many cells that one alone might take longer. Raises `OSError` if the disk
    for temporary files is full.
    """
    if size.cells > _MOST_CELLS * size.microbatches:
        return None
    addresses = _Addresses(config, parts)
    # Take the middle of equal stretches, so that neither the first nor the last stage dominates.
    count = min(_MADE, len(addresses))
    sample = [addresses[(2 * i + 1) * len(addresses) // (2 * count)] for i in range(count)]
    generate_microbatch(config, *sample[0], split)  # so that compilation is not measured
    start = time.perf_counter()
    made = []
    for address in sample:
        made.append(generate_microbatch(config, *address, split))
        if time.perf_counter() - start > _MADE_SECONDS:
            break
    making = time.perf_counter() - start
    # Publishing a part costs a fixed time and a time per microbatch, and a real part holds more
    # microbatches than were made here. Two parts of different sizes separate these costs; a first
    # one is published only to load libraries.
    _publish(config, parts[0], made[:1])
    one, _ = _publish(config, parts[0], made[:1])
    all_of_them, entry = _publish(config, parts[0], made)
    each = max(all_of_them - one, 0.0) / max(len(made) - 1, 1)
    scale = size.cells / entry.n_cells
    publishing = max(one - each, 0.0) * size.parts + each * len(made) * scale
    return Cost(len(made), making * scale + publishing, entry.n_bytes * scale)


def room(config: Config, parts: Sequence[PartId], split: Split, free: float) -> float:
    """Bytes to require of a disk for `parts`, given that `free` bytes are free on it.

    The uncompressed size is cheap to compute and is returned if it fits into `free`. Otherwise, a
    few microbatches are made to estimate the compressed size (see `compressed`).
    """
    size = estimate(config, parts, split)
    if size.bytes <= free:
        return size.bytes
    try:
        cost = measure(config, parts, split, size)
    except OSError:  # temporary files may lie on the same full disk
        cost = None
    return compressed(size, cost)


def compressed(size: Estimate, cost: Cost | None) -> float:
    """Bytes to require of a disk: `cost` with a margin of 10 %, at most the uncompressed `size`.

    Without a `cost`, the uncompressed size. This need not be exact: if the disk runs full, a run
    ends with a clear error, and can be resumed.
    """
    return size.bytes if cost is None else min(size.bytes, 1.1 * cost.bytes)


def _publish(config: Config, part: PartId, made: Sequence[Microbatch]) -> tuple[float, PartEntry]:
    """Write a part to a temporary folder; return the seconds that took, and the part's entry."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        entry = publish_part(Path(folder), part, made, config.shards, plan=None)
        return time.perf_counter() - start, entry
