"""What a run will make, before it is made: parts, tasks, bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prior_gen.factors import draw_factors
from prior_gen.seeding import Split
from puicl_config import Config
from shard_io import Layout, PartId

_SAMPLE = 400
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


def estimate(config: Config, parts: Sequence[PartId], split: Split) -> Estimate:
    """Size of `parts`, from the shapes of a few hundred of their microbatches.

    Shapes are drawn as the generator will draw them, but nothing is generated.
    """
    layout = Layout(config.prior, config.shards.parts_per_stage)
    addresses = [(part.stage, number) for part in parts for number in layout.span(part)]
    sample = addresses[:: max(1, len(addresses) // _SAMPLE)]
    rows, cells, hidden = [], [], []
    for stage, number in sample:
        factors = draw_factors(config.prior, *layout.address(stage, number), split)
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
