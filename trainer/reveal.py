"""Which hidden labels a step reveals (train.reveal_negatives, train.reveal).

Revealed negatives give a strong signal while the row attention learns to compare rows. Their share
falls to zero, and inference reveals none. A supervised counterpart, which is shown a constant share
of both classes, measures what missing negatives cost.
"""

import numpy as np

from puicl_config import PriorConfig, TrainConfig
from trainer.sampler import Address

# Seed domain of the revealed rows, separate from the samplers'.
_REVEAL_KEY = 1_000_002


def revealed_share(prior: PriorConfig, train: TrainConfig, step: int) -> float:
    """Share of the true negatives, or of the rows of both classes, that step `step` reveals."""
    if train.reveal == "both":
        return train.reveal_share
    reveal = train.reveal_negatives
    return reveal.share * max(0.0, 1 - step / (reveal.until * prior.total_steps))


def revealed_rows(train: TrainConfig, address: Address, y: np.ndarray, share: float) -> np.ndarray:
    """Boolean mask of the shape of y [T, n_u]: each row is revealed with probability `share`.

    A pure function of (seed, address), y and `share`. Only negatives are revealed, or, with
    `train.reveal` "both", rows of both classes whatever y; then at least one row of each task
    stays hidden for the loss.
    """
    seeds = np.random.SeedSequence(train.seed, spawn_key=(_REVEAL_KEY, *address))
    uniform = np.random.Generator(np.random.Philox(seeds)).random(y.shape, dtype=np.float32)
    if train.reveal == "both":
        return (uniform < share) & (uniform < uniform.max(axis=1, keepdims=True))
    return (uniform < share) & (y == 0)
