"""Which microbatches a step trains on: a pure function of (plan, sampler, seed, step)."""

import functools

import numpy as np

from puicl_config import PriorConfig, TrainConfig

Address = tuple[int, int, int]

# Seed domain of the samplers' permutations, apart from everything the prior draws.
_SAMPLER_KEY = 1_000_001


def addresses_of_step(prior: PriorConfig, train: TrainConfig, step: int) -> list[Address]:
    """The microbatches [stage, step in stage, index] of optimizer step `step`, in order.

    curriculum: stages in order, as the paper trains. shuffled: the same steps of all stages,
    the tail's included, in one random order drawn from `train.seed`.
    """
    source = step
    if train.sampler == "shuffled":
        source = int(_permutation(train.seed, prior.total_steps)[step])
    stage, within = divmod(source, prior.steps_per_stage)
    return [(stage + 1, within, index) for index in range(prior.microbatches_per_step)]


def stages_of_steps(prior: PriorConfig, train: TrainConfig, start: int, stop: int) -> list[int]:
    """The stages that steps `start` to `stop` - 1 draw from, in order."""
    return sorted({addresses_of_step(prior, train, step)[0][0] for step in range(start, stop)})


@functools.lru_cache(maxsize=2)
def _permutation(seed: int, n: int) -> np.ndarray:
    bits = np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_SAMPLER_KEY,)))
    return np.random.Generator(bits).permutation(n)
