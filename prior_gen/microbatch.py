"""Generation of one microbatch: a pure function of its address."""

import operator
from typing import get_args

import numpy as np
from threadpoolctl import ThreadpoolController

from prior_gen.extensions.task import generate_extended_tasks
from prior_gen.factors import Factors, draw_factors
from prior_gen.half import to_half
from prior_gen.pu_split import negative_rows, split_rows
from prior_gen.scm import draw_scm, run_scm
from prior_gen.seeding import task_generator
from prior_gen.sizes import task_sizes
from prior_gen.standardization import standardize
from puicl_config import Config, InputError, PriorConfig, Split
from shard_io import Microbatch

_blas = ThreadpoolController()


def generate_microbatch(
    config: Config, stage: int, step: int, index: int, split: Split = "train"
) -> Microbatch:
    """Generate microbatch [stage, step, index]: a pure function of its address and `prior`.

    `stage` counts from 1; `step` within the stage and `index` within the step count from 0.

    Returns a `Microbatch` of T tasks: `x` [T, P + n_u, d] in the dtype `shards.x_dtype`, labelled
    positives first, `y` [T, n_u] uint8 (1 = positive), and its tags.

    Raises `InputError` if the plan has no such address or `split` is unknown.
    """
    prior = config.prior
    stage, step, index = (operator.index(number) for number in (stage, step, index))
    if split not in get_args(Split):
        raise InputError(f"split is {split!r}, but must be one of {', '.join(get_args(Split))}")
    if not (0 <= step < prior.steps_in_stage(stage) and 0 <= index < prior.microbatches_per_step):
        raise InputError(
            f"the plan has no microbatch [{stage}, {step}, {index}]: it has "
            f"{prior.total_stages} stages of {prior.steps_per_stage} steps of "
            f"{prior.microbatches_per_step} microbatches"
        )
    factors = draw_factors(prior, stage, step, index, split)
    tags = {"stage": stage, "step": step, "index": index, **factors.tags()}
    # The number of BLAS threads could change the order of summation, and with it the bits.
    with _blas.limit(limits=1):
        if factors.extensions is None:
            tasks = [
                generate_task(
                    task_generator(prior.seed, split, stage, step, index, task), prior, factors
                )
                for task in range(prior.tasks_per_microbatch)
            ]
        else:
            tasks, tags["extensions"] = generate_extended_tasks(
                prior, factors, (stage, step, index), split
            )
    x = np.stack([x for x, _, _ in tasks])
    return Microbatch(
        x=to_half(x) if config.shards.x_dtype == "float16" else x,
        y=np.stack([y for _, y, _ in tasks]),
        tags={**tags, "pi": [pi for _, _, pi in tasks]},
    )


def generate_task(
    rng: np.random.Generator, prior: PriorConfig, factors: Factors
) -> tuple[np.ndarray, np.ndarray, float]:
    """Generate one task: x [P + n_u, d] (labelled positives first), y [n_u] and the target pi."""
    pi = float(rng.uniform(*factors.pi))
    sizes = task_sizes(factors.n_labeled, factors.n_unlabeled, pi)
    draws = draw_scm(rng, prior, factors, sizes.n_rows, factors.blocks_read)
    features, score = run_scm(draws, factors, prior.state_clamp, prior.portable)
    score = standardize(score, prior.value_clip)
    rows, y = split_rows(rng, negative_rows(rng, score, sizes.n_negative), sizes)
    return standardize(features, prior.value_clip, rows), y, pi
