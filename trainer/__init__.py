"""The sharded-data trainer: sampler, step, optimizer, checkpoints and ledger."""

from trainer.compare import Comparison, compare_runs

__all__ = ["Comparison", "compare_runs"]
