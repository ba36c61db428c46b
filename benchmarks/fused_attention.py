"""Processor seconds of one thread: bfloat16 with machine code, without it, and float32 networks.

On processors with tiles (AMX), also measures machine code that does not use them. On processors for
which there is no machine code (without AVX-512 BF16), says so and measures nothing. The variants
take turns, and the best time of each counts. Processor time, unlike wall time, hardly changes with
other work on the machine.
"""

import argparse
import time
from unittest import mock

import torch
from plain_models import Batched
from trainer_speed import step_of

from puicl_config import exit_on_input_error, load_config
from puicl_model import PUICL, attention_code
from puicl_model.fused import has_machine_code, has_tile_code
from trainer.freed_memory import keep_freed_memory


def compare(ways: dict, rounds: int) -> None:
    """Print the best processor seconds of each variant, and their ratio to the last one's."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds + 1):  # the first round warms up; the minimum ignores it
        for name, call in ways.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - start)
    fused = best["bfloat16, machine code"]
    for name, seconds in best.items():
        print(f"{name:28}{seconds:8.2f} s{seconds / fused:8.2f}", flush=True)


def without(call):
    """The same call without machine code: attention in plain PyTorch, its norms and GELU."""

    def run():
        with (
            mock.patch("puicl_model.blocks.can_attend", return_value=False),
            mock.patch("puicl_model.kernels.can_pass", return_value=False),
        ):
            return call()

    return run


def on_vectors(call) -> dict:
    """The same call with machine code without tiles, by name; empty if the default uses none."""
    if not has_tile_code():
        return {}

    def run():
        with mock.patch("puicl_model.fused._code", return_value=attention_code):
            return call()

    return {"bfloat16, without tiles": run}


@exit_on_input_error
def main() -> None:
    """Time training on 2 tasks of 450 rows x 12 features, and inference on 1,000 rows x 20."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    if not has_machine_code():  # all bfloat16 variants would be the same, or float32
        print("this processor has no machine code to compare: that needs AVX-512 BF16, and LLVM")
        return
    torch.set_num_threads(1)
    model = PUICL(load_config("paper").model).eval()
    plain = Batched(model)
    x = torch.randn(1, 1000, 20, generator=torch.Generator().manual_seed(0))
    model.precision = "bfloat16"
    print("inference, 200 + 800 rows x 20 features")
    with torch.inference_mode():
        compare(
            {
                "plain": lambda: plain(x, 200),
                "bfloat16, PyTorch's own": without(lambda: model(x, 200)),
                **on_vectors(lambda: model(x, 200)),
                "bfloat16, machine code": lambda: model(x, 200),
            },
            options.rounds,
        )

    keep_freed_memory()  # as the trainer does, here for all variants
    shape = argparse.Namespace(config="paper", tasks=2, rows=450, features=12)
    step = step_of("bfloat16", shape)
    print("a training step of the paper's model, 2 tasks of 450 rows x 12 features")
    ways = {way: step_of(way, shape) for way in ("literal", "plain")}
    ways |= {"bfloat16, PyTorch's own": without(step), **on_vectors(step)}
    ways["bfloat16, machine code"] = step
    compare(ways, options.rounds)


if __name__ == "__main__":
    main()
