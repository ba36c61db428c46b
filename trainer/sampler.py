"""Which microbatches a step trains on: a pure function of (plan, sampler, seed, step).

A sampler maps an optimizer step to a step of the plan. The plan's steps are numbered from 0, the
curriculum's before the tail's. The learning rate follows the optimizer step with every sampler.
"""

import functools
from collections.abc import Callable

import numpy as np

from puicl_config import PriorConfig, TrainConfig

Address = tuple[int, int, int]

# Seed domain of the samplers' permutations, separate from all of the prior's.
_SAMPLER_KEY = 1_000_001


def addresses_of_step(prior: PriorConfig, train: TrainConfig, step: int) -> list[Address]:
    """Addresses (stage, step in stage, index) of the microbatches of optimizer step `step`."""
    stage, within = divmod(_SAMPLERS[train.sampler](prior, train, step), prior.steps_per_stage)
    return [(stage + 1, within, index) for index in range(prior.microbatches_per_step)]


def stages_of_steps(prior: PriorConfig, train: TrainConfig, start: int, stop: int) -> list[int]:
    """The stages that steps `start` to `stop` - 1 draw from, ascending."""
    return sorted({addresses_of_step(prior, train, step)[0][0] for step in range(start, stop)})


def _curriculum(prior: PriorConfig, train: TrainConfig, step: int) -> int:
    """Stages in order, the tail last, as the paper trains."""
    return step


def _shuffled(prior: PriorConfig, train: TrainConfig, step: int) -> int:
    """Every step of the plan once, all stages mixed, in one order drawn from `train.seed`."""
    return int(_permutation(train.seed, prior.total_steps)[step])


def _reverse(prior: PriorConfig, train: TrainConfig, step: int) -> int:
    """Every step of the plan once, backwards: the tail first, stage 1 last."""
    return prior.total_steps - 1 - step


def _fixed_stage(prior: PriorConfig, train: TrainConfig, step: int) -> int:
    """The steps of stage `train.fixed_stage` alone, over and over."""
    assert train.fixed_stage is not None, "given with this sampler"
    first = (train.fixed_stage - 1) * prior.steps_per_stage
    return first + step % prior.steps_in_stage(train.fixed_stage)


def _tail_only(prior: PriorConfig, train: TrainConfig, step: int) -> int:
    """The tail's steps alone, over and over."""
    return prior.curriculum_steps + step % prior.tail_steps


def _interleaved(prior: PriorConfig, train: TrainConfig, step: int) -> int:
    """Every step of the plan once: the tail's, in order, spread evenly among the curriculum's."""
    tail_before, tail_after = (
        number * prior.tail_steps // prior.total_steps for number in (step, step + 1)
    )
    if tail_after > tail_before:
        return prior.curriculum_steps + tail_before
    return step - tail_before


_SAMPLERS: dict[str, Callable[[PriorConfig, TrainConfig, int], int]] = {
    "curriculum": _curriculum,
    "shuffled": _shuffled,
    "reverse": _reverse,
    "fixed_stage": _fixed_stage,
    "tail_only": _tail_only,
    "interleaved": _interleaved,
}


@functools.lru_cache(maxsize=2)
def _permutation(seed: int, n: int) -> np.ndarray:
    bits = np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_SAMPLER_KEY,)))
    return np.random.Generator(bits).permutation(n)
