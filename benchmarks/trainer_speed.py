"""Cells a second and peak memory of the trainer's step on this machine, in one process.

Ratios are against a forward and backward of one task at a time, as one would write it first.
"""

import argparse
import resource
import time

import torch
import torch.nn.functional as F

from puicl_config import Config, duration, load_config
from trainer.gradient import microbatch_gradient
from trainer.loader import Batch
from trainer.state import TrainState


def typical_batch(config: Config, tasks: int, rows: int, d: int, n_labeled: int) -> Batch:
    """Random values of a typical shape; speed does not depend on them."""
    generator = torch.Generator().manual_seed(0)
    return Batch(
        address=(1, 0, 0),
        x=torch.randn(tasks, rows, d, generator=generator),
        y=torch.randint(0, 2, (tasks, rows - n_labeled), generator=generator),
        n_labeled=n_labeled,
    )


def seconds_of(call, repeats: int) -> float:
    """Seconds of one call, after one to warm up."""
    call()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def main() -> None:
    """Print cells a second for each way to pass the tasks, and what the paper's run would take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rows", type=int, default=450)
    parser.add_argument("--features", type=int, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    config = load_config("paper")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(options.threads)
    state = TrainState(config, device)
    n_labeled = options.rows * 4 // 9
    batch = typical_batch(config, options.tasks, options.rows, options.features, n_labeled)
    cells = options.tasks * options.rows * options.features

    def one_by_one() -> None:
        for x, y in zip(batch.x.to(device), batch.y.to(device), strict=True):
            logits = state.model(x.unsqueeze(0), n_labeled)
            F.cross_entropy(logits.flatten(0, 1), y).backward()
        _wait(device)

    def together(precision: str, tasks_per_forward: int | None):
        def call() -> None:
            changes = {"precision": precision, "tasks_per_forward": tasks_per_forward}
            microbatch_gradient(state, batch, config.train.model_copy(update=changes))
            _wait(device)

        return call

    ways = {
        "one task a forward, float32": one_by_one,
        "all tasks a forward, float32": together("float32", None),
        "2 tasks a forward, float32": together("float32", 2),
        "all tasks a forward, bfloat16": together("bfloat16", None),
        "2 tasks a forward, bfloat16": together("bfloat16", 2),
    }
    print(
        f"{device}, {options.threads} threads, {options.tasks} tasks of {options.rows} rows x "
        f"{options.features} features, the paper's model"
    )
    print(f"{'':34}{'cells/s':>10}{'ratio':>8}{'MB so far':>10}")
    first, best = None, 0.0
    for name, call in ways.items():
        rate = cells / seconds_of(call, options.repeats)
        first = first or rate
        best = max(best, rate)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{name:34}{rate:10.0f}{rate / first:8.2f}{peak:10.0f}", flush=True)
    paper_cells = 25.8e9  # `prior-gen --stages 1-134 --dry-run`
    print(
        f"the paper's 100,000 steps at the best of these: {paper_cells / 1e5 / best:.0f} s a step, "
        f"{duration(paper_cells / best)} in one process (extrapolated; memory: peak so far)"
    )


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
