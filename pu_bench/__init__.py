"""The benchmark: real tables as PU tasks, methods, runner, report and sweeps."""

from pu_bench.command import bench as bench_command
from pu_bench.command import only as only_command
from pu_bench.command import report as report_command
from pu_bench.command import sweep as sweep_command
from pu_bench.methods import METHODS, Method, Prediction
from pu_bench.protocol import PUTask, split_pu
from pu_bench.report import write_report
from pu_bench.sweeps import SWEEPS

__all__ = [
    "METHODS",
    "SWEEPS",
    "Method",
    "PUTask",
    "Prediction",
    "bench_command",
    "only_command",
    "report_command",
    "split_pu",
    "sweep_command",
    "write_report",
]
