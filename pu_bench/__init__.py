"""The benchmark: real tables as PU tasks, methods, and what the demo shows."""

from pu_bench.methods import METHODS, Method, Prediction
from pu_bench.protocol import PUTask, split_pu

__all__ = ["METHODS", "Method", "PUTask", "Prediction", "split_pu"]
