"""`python -m trainer.compact CHECKPOINT OUT`: a checkpoint in bfloat16, about half the size.

To carry a run elsewhere: `train.init_from=OUT` goes on from it, as a new and recorded lineage.
The run itself does not resume from it (that is refused): its bits are rounded.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import torch

from puicl_config import InputError, exit_on_input_error
from trainer.checkpoint import load_checkpoint, save_checkpoint


def compact_checkpoint(source: Path, out: Path) -> Path:
    """Write `source` with every tensor rounded to bfloat16 to `out`/step-...; returns that path.

    Counts stay whole. Raises `InputError` where the checkpoint is damaged or rounded or is there
    already, and where `out` is a file.
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
