"""Negatives shown at first: which hidden labels a step reveals (train.reveal_negatives).

Labelled negatives give a strong signal while the row attention learns to compare rows; their
share falls to zero, and nothing of it remains at inference.
"""

import numpy as np

from puicl_config import PriorConfig, TrainConfig
from trainer.sampler import Address

# Seed domain of the revealed rows, apart from the samplers'.
_REVEAL_KEY = 1_000_002


def revealed_share(prior: PriorConfig, train: TrainConfig, step: int) -> float:
    """Share of the true negatives that optimizer step `step` shows."""
    reveal = train.reveal_negatives
    return reveal.share * max(0.0, 1 - step / (reveal.until * prior.total_steps))


def revealed_rows(train: TrainConfig, address: Address, y: np.ndarray, share: float) -> np.ndarray:
    """Boolean like y [T, n_u]: each negative with probability `share`, by (seed, address) alone."""
    seeds = np.random.SeedSequence(train.seed, spawn_key=(_REVEAL_KEY, *address))
    uniform = np.random.Generator(np.random.Philox(seeds)).random(y.shape, dtype=np.float32)
    return (uniform < share) & (y == 0)
