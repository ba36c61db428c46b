"""The benchmark: real tables as PU tasks, methods, and what the demo shows."""

from pu_bench.methods import all_positive, logistic_positive_vs_unlabeled, puicl
from pu_bench.protocol import PUTask, split_pu

__all__ = ["PUTask", "all_positive", "logistic_positive_vs_unlabeled", "puicl", "split_pu"]
