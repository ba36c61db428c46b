"""Cells per second and peak memory of a training step, against straightforward implementations.

Every variant runs in its own processes, once as one process with all threads and once as one
process per core. Variants take turns, so that the ratios come from one run on one machine.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import IO, cast

import torch
import torch.nn.functional as F
from how_many import count
from plain_models import Batched, Literal, check_logits

from puicl_config import Config, duration, exit_on_input_error, load_config
from puicl_model.precision import computed_in
from trainer.freed_memory import keep_freed_memory
from trainer.gradient import microbatch_gradient
from trainer.loader import Batch
from trainer.state import TrainState

WAYS = {
    "literal": "one task a forward, nn.MultiheadAttention, float32",
    "plain": "all tasks a forward, fused attention, float32",
    "float32": "the trainer, train.precision=float32",
    "bfloat16": "the trainer, train.precision=bfloat16",
}
PAPER_CELLS = 25.9e9  # expected for configs/paper.yaml; the dry run only samples


def typical_batch(config: Config, tasks: int, rows: int, d: int, n_labeled: int) -> Batch:
    """A microbatch of random values of the given shape; speed does not depend on the values."""
    generator = torch.Generator().manual_seed(0)
    return Batch(
        address=(1, 0, 0),
        x=torch.randn(tasks, rows, d, generator=generator),
        y=torch.randint(0, 2, (tasks, rows - n_labeled), generator=generator),
        n_labeled=n_labeled,
    )


def step_of(way: str, options: argparse.Namespace):
    """A function that computes loss and gradient of one microbatch and returns the loss."""
    overrides = ["train.device=cpu"]
    if way == "bfloat16":
        overrides.append("train.precision=bfloat16")
    elif way == "float32":
        overrides.append("train.precision=float32")
    config = load_config(options.config, overrides)
    state = TrainState(config, torch.device("cpu"))
    n_labeled = options.rows * 4 // 9
    batch = typical_batch(config, options.tasks, options.rows, options.features, n_labeled)
    if way in ("float32", "bfloat16"):
        return lambda: microbatch_gradient(state, batch, config.train)[-1].item()
    literal, batched = Literal(state.model), Batched(state.model)

    def one_by_one() -> float:
        total = 0.0
        for x, y in zip(batch.x, batch.y, strict=True):
            loss = F.cross_entropy(literal(x, n_labeled), y) / options.tasks
            loss.backward()
            total += loss.item()
        return total

    def together() -> float:
        loss = F.cross_entropy(batched(batch.x, n_labeled).flatten(0, 1), batch.y.flatten())
        loss.backward()
        return loss.item()

    return one_by_one if way == "literal" else together


def work(way: str, options: argparse.Namespace) -> None:
    """Run a worker: warm up, say so, then time one round for each line read from stdin."""
    torch.set_num_threads(options.threads)
    if way in ("float32", "bfloat16"):  # as the trainer does
        keep_freed_memory()
    step = step_of(way, options)
    if way != "literal":  # too slow to need a warm-up
        step()
    print("ready", flush=True)
    for _ in sys.stdin:
        start, worked = time.perf_counter(), time.process_time()
        for _ in range(options.repeats):
            loss = step()
        seconds = (time.perf_counter() - start) / options.repeats
        worked = (time.process_time() - worked) / options.repeats
        print(f"{seconds} {worked} {peak_megabytes()} {loss}", flush=True)


def peak_megabytes() -> float:
    """Peak resident memory of this process, in megabytes."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1024


def measure(way: str, processes: int, threads: int, options: argparse.Namespace) -> dict:
    """Time one step of `processes` parallel workers."""
    command = [sys.executable, __file__, "--worker", way]
    for name in ("config", "tasks", "rows", "features", "repeats"):
        command += [f"--{name}", str(getattr(options, name))]
    command += ["--threads", str(threads)]
    pipe = subprocess.PIPE
    workers = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(processes)
    ]
    # For the type checker: these processes have pipes.
    inputs = [cast(IO[str], worker.stdin) for worker in workers]
    outputs = [cast(IO[str], worker.stdout) for worker in workers]
    for output in outputs:
        output.readline()
    for told in inputs:
        told.write("go\n")
        told.flush()
    answers = [[float(x) for x in output.readline().split()] for output in outputs]
    for worker in workers:
        worker.communicate()
    cells = processes * options.tasks * options.rows * options.features
    seconds, worked, memory, losses = zip(*answers, strict=True)
    return {
        "rate": cells / max(seconds),
        "worked": cells / sum(worked),
        "memory": sum(memory),
        "loss": losses[0],
    }


def measured_in_turn(
    ways: list[str], layouts: list[tuple[int, int]], options
) -> dict[tuple, list[dict]]:
    """Measurements of each round, by variant, processes and threads."""
    found: dict[tuple, list[dict]] = {}
    losses: list[float] = []
    for number in range(options.rounds):  # so that other load affects all variants alike
        for way in ways:
            for layout in layouts:
                new = measure(way, *layout, options)
                found.setdefault((way, *layout), []).append(new)
                losses.append(new["loss"])
                if abs(losses[-1] - losses[0]) > 2e-3:
                    raise SystemExit(f"{way} computes another loss: {losses[-1]}, not {losses[0]}")
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return found


def ratio(found: dict[tuple, list[dict]], ours: str, theirs: str, key: str) -> str:
    """Median, minimum and maximum over rounds, each variant with its better layout."""

    def best(way: str) -> list[float]:
        layouts = [rounds for (name, *_), rounds in found.items() if name == way]
        return [max(r[key] for r in one_round) for one_round in zip(*layouts, strict=True)]

    all_rounds = [a / b for a, b in zip(best(ours), best(theirs), strict=True)]
    return f"{median(all_rounds):.2f} ({min(all_rounds):.2f} to {max(all_rounds):.2f})"


def matmul_peak(dtype: torch.dtype, threads: int) -> float:
    """GFLOP/s of a large matrix product on `threads` threads."""
    torch.set_num_threads(threads)
    n = 2048
    a = torch.randn(n, n).to(dtype)
    a @ a
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < 1:
        a @ a
        count += 1
    return 2 * n**3 * count / (time.perf_counter() - start) / 1e9


def flops_of_a_cell(config: Config, rows: int, d: int) -> float:
    """Forward and backward FLOPs of the whole network per feature cell."""
    model = config.model
    e, columns = model.embedding_size, d + 1
    linear = 2 * (8 * e * e + 2 * e * model.feedforward_size)
    attention = 4 * e * (rows + columns)
    return 3 * model.layers * (linear + attention) * columns / d


@exit_on_input_error
def main() -> None:
    """Print cells per second, ratios, memory and the share of the machine's matmul peak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--config", default="paper", help="config of the model and prior")
    parser.add_argument("--tasks", type=count, default=8)
    parser.add_argument("--rows", type=count, default=450)
    parser.add_argument("--features", type=count, default=12)
    parser.add_argument("--threads", type=count, default=2, help="cores to use")
    parser.add_argument("--repeats", type=count, default=1)
    parser.add_argument(
        "--rounds", type=count, default=3, help="number of rounds; medians are shown"
    )
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    if options.worker:
        return work(options.worker, options)

    ways = options.ways.split(",")
    if unknown := [way for way in ways if way not in WAYS]:
        parser.error(f"--ways has no {unknown[0]!r}: there are {', '.join(WAYS)}")
    config = load_config(options.config)
    if "bfloat16" in ways and computed_in("bfloat16", torch.device("cpu")) != "bfloat16":
        ways.remove("bfloat16")
        print("without bfloat16, which this processor would compute in float32")
    exact = load_config(options.config, ["train.device=cpu", "train.precision=float32"])
    check_logits(TrainState(exact, torch.device("cpu")).model)
    # bfloat16's peak only if it is measured: without instructions for it a product takes minutes.
    kinds = [torch.float32, *([torch.bfloat16] if "bfloat16" in ways else [])]
    peaks = {kind: matmul_peak(kind, options.threads) for kind in kinds}
    flops = flops_of_a_cell(config, options.rows, options.features)
    print(
        f"{options.tasks} tasks of {options.rows} rows x {options.features} features, the model of "
        f"{options.config}.yaml, {options.threads} cores; matrix products reach "
        + ", ".join(f"{peak:.0f} GFLOP/s in {str(kind)[6:]}" for kind, peak in peaks.items())
    )
    layouts = [(1, options.threads)]
    if options.threads > 1:
        layouts.append((options.threads, 1))
    found = measured_in_turn(ways, layouts, options)
    print(f"{'':56}{'processes':>10}{'cells/s':>9}{'a CPU s':>9}{'MB':>7}{'of peak':>9}{'loss':>9}")
    fastest = 0.0
    for (way, processes, threads), rounds in found.items():
        peak = peaks[torch.bfloat16 if way == "bfloat16" else torch.float32]
        rate, worked, memory = (
            median(r[key] for r in rounds) for key in ("rate", "worked", "memory")
        )
        fastest = max(fastest, rate)
        print(
            f"{WAYS[way]:56}{f'{processes} x {threads}':>10}{rate:9.0f}{worked:9.0f}{memory:7.0f}"
            f"{rate * flops / peak / 1e9:9.0%}{rounds[0]['loss']:9.4f}"
        )
    for ours in ("float32", "bfloat16"):
        for theirs in ("literal", "plain"):
            if {ours, theirs} <= set(ways):
                told = [ratio(found, ours, theirs, key) for key in ("rate", "worked")]
                print(f"best of {ours} / best of {theirs}: {told[0]}, a CPU second {told[1]}")
    if options.config == "paper":
        print(
            f"the paper's 100,000 steps at {fastest:.0f} cells/s: {PAPER_CELLS / 1e5 / fastest:.0f}"
            f" s a step, {duration(PAPER_CELLS / fastest)} (extrapolated)"
        )
    return None


if __name__ == "__main__":
    main()
