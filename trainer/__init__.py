"""The sharded-data trainer: sampler, step, optimizer, checkpoints and ledger."""

from trainer.average import average_checkpoints
from trainer.compare import Comparison, compare_runs
from trainer.plot import draw_curves

__all__ = ["Comparison", "average_checkpoints", "compare_runs", "draw_curves"]
