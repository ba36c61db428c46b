"""Run methods on tasks: cells, their metrics, and the folder that stores them."""

from pu_bench.run.cells import Cell, run_cell
from pu_bench.run.metrics import METRICS, judge
from pu_bench.run.runner import (
    Plan,
    make_method,
    run_benchmark,
    run_only,
    usable_methods,
)

__all__ = [
    "METRICS",
    "Cell",
    "Plan",
    "judge",
    "make_method",
    "run_benchmark",
    "run_cell",
    "run_only",
    "usable_methods",
]
