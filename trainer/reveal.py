"""Which hidden labels a step shows (train.reveal_negatives, train.reveal).

Labelled negatives give a strong signal while the row attention learns to compare rows; their
share falls to zero, and nothing of it remains at inference. A supervised peer, which is shown a
constant share of both classes, tells what missing negatives cost.
"""

import numpy as np

from puicl_config import PriorConfig, TrainConfig
from trainer.sampler import Address

# Seed domain of the revealed rows, apart from the samplers'.
_REVEAL_KEY = 1_000_002


def revealed_share(prior: PriorConfig, train: TrainConfig, step: int) -> float:
    """Share of the true negatives, or of the rows of both classes, that step `step` shows."""
    if train.reveal == "both":
        return train.reveal_share
    reveal = train.reveal_negatives
    return reveal.share * max(0.0, 1 - step / (reveal.until * prior.total_steps))


def revealed_rows(train: TrainConfig, address: Address, y: np.ndarray, share: float) -> np.ndarray:
    """Boolean like y [T, n_u]: rows shown with probability `share`, by (seed, address) alone.

    Of the negatives only, or of both classes without a look at y; then one row of each task, at
    least, stays hidden for the loss.
    """
    seeds = np.random.SeedSequence(train.seed, spawn_key=(_REVEAL_KEY, *address))
    uniform = np.random.Generator(np.random.Philox(seeds)).random(y.shape, dtype=np.float32)
    if train.reveal == "both":
        return (uniform < share) & (uniform < uniform.max(axis=1, keepdims=True))
    return (uniform < share) & (y == 0)
