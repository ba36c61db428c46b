"""The sharded-data trainer: sampler, step, optimizer, checkpoints and ledger."""

import trainer.launcher  # noqa: F401  # must precede the imports below, which load PyTorch

# isort: split
from trainer.average import average_checkpoints
from trainer.compare import Comparison, compare_runs
from trainer.plot import draw_curves
from trainer.provenance import export_weights
from trainer.recorded import check_start, differing_parts, gave_bits_up, recorded_stages, replay

__all__ = [
    "Comparison",
    "average_checkpoints",
    "check_start",
    "compare_runs",
    "differing_parts",
    "draw_curves",
    "export_weights",
    "gave_bits_up",
    "recorded_stages",
    "replay",
]
