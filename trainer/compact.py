"""`python -m trainer.compact CHECKPOINT OUT`: a checkpoint in bfloat16, about half the size.

Use it to move a run to another machine: a new run with `train.init_from` set to the printed path
continues from it and records it in its lineage. The run itself refuses to resume from it, since
its tensors are rounded.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from puicl_config import InputError, exit_on_input_error
from trainer.checkpoint import load_checkpoint, save_checkpoint


def compact_checkpoint(source: Path, out: Path) -> Path:
    """Write `source`, rounded to bfloat16, to `out`/step-...; returns that path.

    Integer tensors (counts of steps) are not rounded. Raises `InputError` if the checkpoint is
    damaged or rounded already, if `out` holds its step already, and if `out` is a file.
    """
    state, tensors = load_checkpoint(source)
    if state.is_rounded(tensors):
        raise InputError(f"{source} is rounded already")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a folder")
    if out.exists() and any(out.glob(f"step-{state.step:08d}")):
        raise InputError(f"{out} holds step {state.step} already")
    rounded = {
        name: tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor
        for name, tensor in tensors.items()
    }
    state = replace(state, rounded_from=state.tensors_digest)
    return save_checkpoint(out, state, rounded)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="a run's checkpoints/step-... folder")
    parser.add_argument("out", type=Path, help="folder to write the rounded checkpoint to")
    arguments = parser.parse_args()
    print(compact_checkpoint(arguments.source, arguments.out))


if __name__ == "__main__":
    exit_on_input_error(main)()
