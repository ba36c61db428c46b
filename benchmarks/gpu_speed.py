"""Cost of a microbatch, an optimizer update and a step on a GPU, compiled and not.

    python benchmarks/gpu_speed.py [--tasks 8 16] [--ways eager graphs blocks model] [--profile N]

Each way computes the same microbatches of the config's prior, made here; its first passes, in which
kernels are compiled, are timed separately. `--compare` compares the gradients of the first
microbatches with those of a CPU in float32; `--check` compares recorded graphs with separate
kernels.
"""

import argparse
import time

import torch
from how_many import count

from prior_gen.microbatch import generate_microbatch
from puicl_config import Config, InputError, exit_on_input_error, load_config
from trainer.gradient import microbatch_gradient
from trainer.graphs import RecordedGradients, cut_rows
from trainer.loader import Batch, as_batch, rounded
from trainer.state import TrainState
from trainer.world import choose_algorithms

WAYS = ("eager", "graphs", "blocks", "model")


@exit_on_input_error
def main() -> None:
    """Print one line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="gpu")
    parser.add_argument("--tasks", type=count, nargs="+", default=[8])
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--ways", nargs="*", default=["eager"], choices=WAYS)
    parser.add_argument("--deterministic", type=int, nargs="+", default=[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", type=int, default=0, help="number of longest kernels to print")
    parser.add_argument("--compare", type=int, default=0, help="microbatches to compare with a CPU")
    parser.add_argument(
        "--check", type=int, default=0, help="microbatches to check with and without graphs"
    )
    asked = parser.parse_args()
    if asked.microbatches < 1:
        parser.error("--microbatches must be 1 or more")
    if torch.device(asked.device).type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"--device is {asked.device}, but torch sees no GPU here; give cpu")
    for tasks in asked.tasks:
        config = load_config(
            asked.config, [f"prior.tasks_per_microbatch={tasks}", "train.compile=false"]
        )
        batches = make_batches(config, asked.microbatches)
        if asked.compare:
            compare(config, batches[: asked.compare], asked.device)
        if asked.check:
            check_graphs(config, batches[: asked.check], asked.device)
        for deterministic in asked.deterministic:
            for way in asked.ways:
                try:
                    measure(config, batches, way, bool(deterministic), asked)
                except Exception as error:  # the other ways are still worth measuring
                    print(f"{way}: {type(error).__name__}: {str(error)[-1500:]}", flush=True)


def make_batches(config: Config, count: int) -> list[Batch]:
    """The first `count` microbatches of the plan, cut as the trainer would."""
    each = config.prior.microbatches_per_step
    return [
        rounded(
            as_batch(
                (1, number // each, number % each),
                generate_microbatch(config, 1, number // each, number % each),
            ),
            config.train.round_rows,
        )
        for number in range(count)
    ]


def compare(config: Config, batches: list[Batch], device: str) -> None:
    """Print how far the device's gradients are from those of a CPU in float32."""
    exact = config.train.model_copy(update={"precision": "float32", "tasks_per_forward": 1})
    here, there = TrainState(config, torch.device("cpu")), TrainState(config, torch.device(device))
    for batch in batches:
        expected = microbatch_gradient(here, batch, exact)
        found = microbatch_gradient(there, batch, config.train).cpu()
        angle = torch.cosine_similarity(found[:-1], expected[:-1], dim=0)
        print(
            f"gradient of {list(batch.x.shape)}: cosine {angle:.5f} with float32, lengths "
            f"{found[:-1].norm():.4f} and {expected[:-1].norm():.4f}, losses {found[-1]:.5f} and "
            f"{expected[-1]:.5f}",
            flush=True,
        )


def check_graphs(config: Config, batches: list[Batch], device: str) -> None:
    """Print how far the results of graphs are from those of separate kernels.

    Three rounds, in which each shape is computed, recorded and replayed.
    """
    state = TrainState(config, torch.device(device))
    batches = [cut_rows(batch) for batch in batches]
    expected = torch.stack([microbatch_gradient(state, batch, config.train) for batch in batches])
    recorded = RecordedGradients(state, config.train)
    for _ in range(3):
        rows = torch.stack([recorded(batch) for batch in batches])
        angles = torch.cosine_similarity(rows[:, :-1], expected[:, :-1], dim=1)
        loss = (rows[:, -1] - expected[:, -1]).abs()
        print(
            f"recorded: cosine {angles.min():.6f} or more with kernel by kernel, losses differ by "
            f"{loss.max():.6f} or less",
            flush=True,
        )


def measure(
    config: Config, batches: list[Batch], way: str, deterministic: bool, asked: argparse.Namespace
) -> None:
    """One line: seconds of the first round, then of a microbatch and of an update, and rates."""
    torch._dynamo.reset()
    choose_algorithms(deterministic)
    state = TrainState(config, torch.device(asked.device))
    if way == "blocks":
        for block in state.model.blocks:
            block.compile(dynamic=True)
    elif way == "model":
        state.model.compile(dynamic=True)
    each = config.prior.microbatches_per_step
    recorded = RecordedGradients(state, config.train) if way == "graphs" else None
    rows = torch.zeros(each, state.gradient.numel() + 1, device=asked.device)

    def round_of(some: list[Batch]) -> None:
        for place, batch in enumerate(some):
            if recorded:
                rows[place % each] = recorded(batch)
            else:
                rows[place % each] = microbatch_gradient(state, batch, config.train)
            if (place + 1) % each == 0:
                state.update(rows[:, :-1].mean(0), 1e-6)

    began = time.perf_counter()
    round_of(batches)
    wait(asked.device)
    first = time.perf_counter() - began
    for _ in range(2):
        round_of(batches)
        wait(asked.device)
    began, rounds = time.perf_counter(), 0
    while time.perf_counter() - began < asked.seconds:
        round_of(batches)
        wait(asked.device)
        rounds += 1
    spent = time.perf_counter() - began
    gradient = torch.randn_like(state.gradient)
    state.update(gradient, 1e-6)
    wait(asked.device)
    began = time.perf_counter()
    for _ in range(5):
        state.update(gradient, 1e-6)
    wait(asked.device)
    update = (time.perf_counter() - began) / 5
    cells = sum(b.x.shape[0] * b.x.shape[1] * (b.x.shape[2] + 1) for b in batches)
    tasks = sum(len(b.x) for b in batches)
    print(
        f"{way}, deterministic {deterministic}, "
        f"{len(batches[0].x)} tasks a microbatch: first round {first:.1f} s; "
        f"{1e3 * spent / rounds / len(batches):.2f} ms a microbatch, update "
        f"{1e3 * update:.2f} ms; {rounds * cells / spent / 1e6:.3f} M cells/s, "
        f"{rounds * tasks / spent:.0f} tasks/s, {rounds * len(batches) / each / spent:.2f} steps/s",
        flush=True,
    )
    if asked.profile:
        kind = torch.profiler.ProfilerActivity
        on_gpu = torch.device(asked.device).type == "cuda"
        activity = kind.CUDA if on_gpu else kind.CPU
        with torch.profiler.profile(activities=[activity]) as profile:
            round_of(batches[:each])
            wait(asked.device)
        spent_in = "self_device_time_total" if on_gpu else "self_cpu_time_total"
        events = sorted(profile.key_averages(), key=lambda event: -getattr(event, spent_in))
        total = sum(getattr(event, spent_in) for event in events)
        print(f"{total / 1e3:.1f} ms in {sum(event.count for event in events)} kernels")
        for event in events[: asked.profile]:
            microseconds = getattr(event, spent_in)
            print(f"{microseconds / total:6.1%} {event.count:6d} {event.key[:110]}")


def wait(device: str) -> None:
    """Wait until the device has finished its work."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
