"""What a run will make, before it is made: parts, tasks, bytes, time."""

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

# A microbatch of more cells is not made for an estimate.
_MOST_CELLS = 50_000_000
_SAMPLE = 400
_MADE = 16
_MADE_SECONDS = 10.0
# Tasks that take one core half a second (paper.yaml) to four (cpu_wide.yaml).
_WORTH_A_WORKER = 500
# Tags, offsets and the formats' own headers, a microbatch.
_OVERHEAD_BYTES = 2500


@dataclass(frozen=True)
class Estimate:
    """Counts are exact; rows, cells and bytes come from a sample. Bytes are uncompressed."""

    parts: int
    microbatches: int
    tasks: int
    rows: float
    cells: float
    bytes: float


def worker_count(jobs: int | None, parts: int, tasks: int) -> int:
    """Processes for `tasks` in so many parts: `jobs`, or as many as this machine has cores.

    But no more than parts, and none more whose start, some seconds, would take longer than its
    share of the work.
    """
    return min(jobs or min(joblib.cpu_count(), 1 + tasks // _WORTH_A_WORKER), max(parts, 1))


def estimate(config: Config, parts: Sequence[PartId], split: Split) -> Estimate:
    """Size of `parts`, from the shapes of a few hundred of their microbatches.

    Shapes are drawn as the generator will draw them, but nothing is generated.
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
    """Microbatches of parts, as [stage, step, index], made only where they are asked for."""

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
    """From `sampled` microbatches made here: seconds of one worker, and bytes on disk."""

    sampled: int
    seconds: float
    bytes: float


def measure(config: Config, parts: Sequence[PartId], split: Split, size: Estimate) -> Cost | None:
    """What `parts` will cost, from making a few of their microbatches as a worker makes them.

    `size` is their estimate: seconds and bytes are scaled by cells. `parts` must not be empty.
    Takes some ten seconds at most; what it writes is gone afterwards. None where a microbatch has
    so many cells that one alone might take longer.
    """
    if size.cells > _MOST_CELLS * size.microbatches:
        return None
    addresses = _Addresses(config, parts)
    # From the middle of equal stretches, so that neither the first nor the last stage decides.
    count = min(_MADE, len(addresses))
    sample = [addresses[(2 * i + 1) * len(addresses) // (2 * count)] for i in range(count)]
    generate_microbatch(config, *sample[0], split)  # compiles what is compiled once
    start = time.perf_counter()
    made = []
    for address in sample:
        made.append(generate_microbatch(config, *address, split))
        if time.perf_counter() - start > _MADE_SECONDS:
            break
    making = time.perf_counter() - start
    # A part takes its time whatever it holds, and a real one holds more than were made here: what
    # it takes to publish is told apart by two of them. The first of all loads libraries.
    _publish(config, parts[0], made[:1])
    one, _ = _publish(config, parts[0], made[:1])
    all_of_them, entry = _publish(config, parts[0], made)
    each = max(all_of_them - one, 0.0) / max(len(made) - 1, 1)
    scale = size.cells / entry.n_cells
    publishing = max(one - each, 0.0) * size.parts + each * len(made) * scale
    return Cost(len(made), making * scale + publishing, entry.n_bytes * scale)


def room(config: Config, parts: Sequence[PartId], split: Split, free: float) -> float:
    """Bytes that a disk needs for `parts`, of which it has `free`: enough if they are more.

    As they are without compression, which costs nothing to know; where these are too many, what
    `compressed` says.
    """
    size = estimate(config, parts, split)
    if size.bytes <= free:
        return size.bytes
    try:
        cost = measure(config, parts, split, size)
    except OSError:  # the disk of temporary files may be that full one
        cost = None
    return compressed(size, cost)


def compressed(size: Estimate, cost: Cost | None) -> float:
    """Bytes to ask a disk for: what `measure` found of that size, if it did, and a tenth more.

    That is a sample's word: a run that finds its disk full ends in a sentence, and goes on.
    """
    return size.bytes if cost is None else min(size.bytes, 1.1 * cost.bytes)


def _publish(config: Config, part: PartId, made: Sequence[Microbatch]) -> tuple[float, PartEntry]:
    """Seconds to write a part, which is gone afterwards, and its entry."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        entry = publish_part(Path(folder), part, made, config.shards, plan=None)
        return time.perf_counter() - start, entry
