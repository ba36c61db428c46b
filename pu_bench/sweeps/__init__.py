"""Sweeps: how methods fare when one property of the task is varied."""

from pu_bench.sweeps.pools import COMMAND, Composition, Pool, draw, shard_pools, table_pools
from pu_bench.sweeps.report import write_sweep_report
from pu_bench.sweeps.runner import SweepPlan, run_sweeps
from pu_bench.sweeps.sweeps import SWEEPS

__all__ = [
    "COMMAND",
    "SWEEPS",
    "Composition",
    "Pool",
    "SweepPlan",
    "draw",
    "run_sweeps",
    "shard_pools",
    "table_pools",
    "write_sweep_report",
]
