"""Speed and size of the generator on the paper's last stage, against a literal reference.

The reference makes the same prior one task at a time in PyTorch, as one would write it first, on
one thread and without storing anything. Everything else here runs in one process, too.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from prior_gen import generate_microbatch
from prior_gen.factors import draw_factors
from prior_gen.sizes import task_sizes
from puicl_config import Config, ShardsConfig, duration, load_config
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
    """One task from the paper's formulas, with the batch factors given."""
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


def reference_speed(config: Config, addresses) -> float:
    """Tasks a second of the reference on one thread, over these microbatches."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    count = config.prior.tasks_per_microbatch
    start = time.perf_counter()
    for address in addresses:
        factors = draw_factors(config.prior, *address)
        for _ in range(count):
            reference_task(factors, generator)
    return len(addresses) * count / (time.perf_counter() - start)


def main() -> None:
    """Print tasks a second, ratios, bytes a task, and what the paper's whole run would take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--microbatches", type=int, default=120)
    count = parser.parse_args().microbatches
    config = load_config("paper")
    prior = config.prior
    # Spread over the last stages: L_g and h are drawn once a stage and decide much of the cost.
    stages = range(prior.total_stages - min(count, 30), prior.total_stages)
    addresses = [(stages[n % len(stages)], n // len(stages), 0) for n in range(count)]
    tasks = count * prior.tasks_per_microbatch

    generate_microbatch(config, *addresses[0])  # imports and first calls
    reference = reference_speed(config, addresses)
    start = time.perf_counter()
    microbatches = [generate_microbatch(config, *address) for address in addresses]
    generating = time.perf_counter() - start
    raw = sum(batch.x.nbytes + batch.y.nbytes for batch in microbatches)
    cells = sum(batch.x.size for batch in microbatches)
    print(f"{tasks} tasks of stages {stages[0]}-{stages[-1]}, one process, one thread")
    print(f"{'':34}{'tasks/s':>10}{'ratio':>8}{'bytes/task':>12}{'MB/s read':>11}")
    print(f"{'literal PyTorch reference':34}{reference:10.0f}{1:8.2f}{'-':>12}{'-':>11}")
    speed = tasks / generating
    print(f"{'generated':34}{speed:10.0f}{speed / reference:8.2f}{raw / tasks:12.0f}{'-':>11}")

    chosen = 0.0
    for shard_format, level in (("zarr", 1), ("zarr", 5), ("zarr", 9), ("webdataset", 5)):
        storage = ShardsConfig(format=shard_format, zstd_level=level)
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            entry = publish_part(Path(folder), PartId(1, 0), microbatches, storage)
            speed = tasks / (generating + time.perf_counter() - start)
            reading = _read_speed(Path(folder), storage, raw)
        name = f"written as {shard_format}" + (f", zstd {level}" if shard_format == "zarr" else "")
        size = entry.n_bytes / tasks
        print(f"{name:34}{speed:10.0f}{speed / reference:8.2f}{size:12.0f}{reading:11.0f}")
        if (shard_format, level) == (config.shards.format, config.shards.zstd_level):
            chosen, chosen_size = speed, size

    total = prior.total_steps * prior.microbatches_per_step * prior.tasks_per_microbatch
    print(
        f"the paper's run, {total:,} tasks: {total * chosen_size / 1e9:.0f} GB on disk and "
        f"{duration(total / chosen)} on one core (extrapolated; {cells / tasks:.0f} cells a task)"
    )


def _read_speed(folder: Path, storage: ShardsConfig, raw: int) -> float:
    """Uncompressed megabytes a second, microbatch by microbatch."""
    from shard_io.parts import open_part

    part = open_part(folder, PartId(1, 0), storage.format)
    start = time.perf_counter()
    size = sum(np.asarray(part[position].x).nbytes for position in range(len(part)))
    assert size <= raw
    return size / 1e6 / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
