"""Speed and size of the generator on the paper's last stage, against a literal reference.

The reference is a straightforward PyTorch implementation of the same prior, one task at a time, on
one thread and without storing anything. It and the generator take turns in one process, so that a
varying clock rate favours neither. The second ratio is of processor time, which hardly changes with
other work on the machine but leaves out waiting for the disk. Then whole stages are made with one
worker and with two, including start-up, as `prior-gen` makes them.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from prior_gen import generate_microbatch
from prior_gen.factors import draw_factors
from prior_gen.generator import generate_shards
from prior_gen.sizes import task_sizes
from puicl_config import Config, duration, exit_on_input_error, load_config
from shard_io import PartId, publish_part

ACTIVATIONS = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "identity": lambda x: x,
    "sign": torch.sign,
    "step": lambda x: (x > 0).float(),
    "rbf": lambda x: torch.exp(-(x**2)),
    "sin": torch.sin,
    "square": lambda x: x**2,
    "abs": torch.abs,
}


def reference_task(factors, generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Make one task by the paper's formulas, given the batch factors."""
    low, high = factors.pi
    pi = low + (high - low) * torch.rand((), generator=generator).item()
    sizes = task_sizes(factors.n_labeled, factors.n_unlabeled, pi)
    n, h, k = sizes.n_rows, factors.hidden_width, factors.n_causes

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    uniform = factors.input_distribution == "uniform"
    causes = torch.rand(n, k, generator=generator) if uniform else normal(n, k)
    state = causes @ (0.8 * normal(h, k)).T
    pool = []
    for name in factors.activations:
        state = ACTIVATIONS[name](state.clamp(-1e6, 1e6)) @ (0.8 * normal(h, h)).T
        state = state + factors.sigma_noise * normal(n, h)
        pool.append(state)
    if factors.causal:
        nodes = torch.cat(pool, dim=1)
        x, score = nodes[:, factors.feature_nodes], nodes[:, factors.label_node]
    else:
        read = state @ (0.8 * normal(factors.n_features + 1, h)).T
        x = causes if factors.source == "causes" else read[:, :-1]
        x, score = x[:, factors.feature_order], read[:, -1]
    x = ((x - x.mean(0)) / x.std(0).clamp_min(1e-6)).clamp(-20, 20)
    score = ((score - score.mean()) / score.std().clamp_min(1e-6)).clamp(-20, 20)
    order = torch.argsort(score, descending=True)
    negatives, positives = order[: sizes.n_negative], order[sizes.n_negative :]
    positives = positives[torch.randperm(len(positives), generator=generator)]
    negatives = negatives[torch.randperm(len(negatives), generator=generator)]
    hidden = torch.cat([positives[factors.n_labeled :], negatives[sizes.n_removed :]])
    hidden = hidden[torch.randperm(len(hidden), generator=generator)]
    is_negative = torch.zeros(n, dtype=torch.bool)
    is_negative[negatives] = True
    return x[torch.cat([positives[: factors.n_labeled], hidden])], ~is_negative[hidden]


def clocks() -> np.ndarray:
    """Wall seconds, and processor seconds that this process has used."""
    return np.array([time.perf_counter(), time.process_time()])


def reference_seconds(config: Config, addresses) -> np.ndarray:
    """Wall and processor seconds of the reference for these microbatches, on one thread."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    start = clocks()
    for address in addresses:
        factors = draw_factors(config.prior, *address)
        for _ in range(config.prior.tasks_per_microbatch):
            reference_task(factors, generator)
    return clocks() - start


def our_seconds(config: Config, addresses) -> tuple[np.ndarray, np.ndarray, int]:
    """Wall and processor seconds to generate and store microbatches; bytes on disk."""
    start = clocks()
    microbatches = [generate_microbatch(config, *address) for address in addresses]
    generating = clocks() - start
    with tempfile.TemporaryDirectory() as folder:
        start = clocks()
        entry = publish_part(Path(folder), PartId(1, 0), microbatches, config.shards, plan=None)
        return generating, clocks() - start, entry.n_bytes


def stages_per_second(config: Config, stages, jobs: int) -> float:
    """Tasks per second for whole stages, from the start of the workers to the last manifest."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        result = generate_shards(config, Path(folder), stages, jobs=jobs)
        seconds = time.perf_counter() - start
        return sum(entry.n_tasks for entry in result.written) / seconds


@exit_on_input_error
def main() -> None:
    """Print tasks per second, ratios, bytes per task, and an estimate for the paper's whole run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--microbatches", type=int, default=120)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument(
        "--worker-stages", type=int, default=2, help="stages made with workers; 0: none"
    )
    arguments = parser.parse_args()
    count, rounds = arguments.microbatches, arguments.rounds
    if not 1 <= rounds <= count:
        parser.error(f"--rounds must be from 1 to {count}: a microbatch or more in each round")
    config = load_config("paper")
    prior = config.prior
    # Spread over the last stages: L_g and h are drawn once a stage and determine most of the cost.
    stages = range(prior.total_stages - min(count, 30), prior.total_stages)
    addresses = [(stages[n % len(stages)], n // len(stages), 0) for n in range(count)]
    tasks = count * prior.tasks_per_microbatch

    our_seconds(config, addresses[:2])  # imports and first calls
    reference, generating, storing, size = np.zeros(2), np.zeros(2), np.zeros(2), 0
    for turn in range(rounds):
        turns = addresses[turn::rounds]
        reference += reference_seconds(config, turns)
        ours = our_seconds(config, turns)
        generating, storing, size = generating + ours[0], storing + ours[1], size + ours[2]

    whole = generating + storing
    print(f"{tasks} tasks of stages {stages[0]}-{stages[-1]}, one process, one thread")
    print(f"{'':40}{'tasks/s':>10}{'ratio':>8}{'tasks/CPU s':>13}{'ratio':>8}")
    for name, seconds in (
        ("literal PyTorch reference, not stored", reference),
        ("generated", generating),
        ("generated, compressed and on disk", whole),
    ):
        ratios = reference / seconds
        speeds = tasks / seconds
        print(f"{name:40}{speeds[0]:10.0f}{ratios[0]:8.2f}{speeds[1]:13.0f}{ratios[1]:8.2f}")
    total = prior.total_steps * prior.microbatches_per_step * prior.tasks_per_microbatch
    print(
        f"the paper's run, {total:,} tasks at {size / tasks:.0f} bytes: "
        f"{total * size / tasks / 1e9:.0f} GB on disk and {duration(total * whole[0] / tasks)} on "
        "one core (extrapolated)"
    )
    if arguments.worker_stages:
        last = range(prior.stages - arguments.worker_stages + 1, prior.stages + 1)
        speeds = [stages_per_second(config, last, jobs) for jobs in (1, 2)]
        print(f"stages {last[0]}-{last[-1]} as prior-gen makes them, start-up included")
        for jobs, speed in zip((1, 2), speeds, strict=True):
            print(f"{f'{jobs} worker(s)':40}{speed:10.0f}{speed / speeds[0]:8.2f}")
        print(f"the paper's run with two workers: {duration(total / speeds[1])} (extrapolated)")


if __name__ == "__main__":
    main()
