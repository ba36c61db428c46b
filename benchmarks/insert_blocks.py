"""Insert blocks that hardly change a network's outputs, to be made useful by training.

    python benchmarks/insert_blocks.py --model default --after 3,5 --shards DIR --out M.safetensors
    torchrun trainer/main.py --config CONFIG --shards DIR \\
        model.layers=12 train.init_from=M.safetensors

A new block is a copy of the one before it whose three sublayers add nothing: their output weights
are zero. So training starts from attention that already looks at useful places. Each sublayer ends
in a norm, so cells pass three more norms. With RMSNorm and equal gains only the first of them
changes anything, and only as far as the sizes (root mean squares) of its inputs vary. The gains are
set to the mean size on some microbatches of `--shards`.

Prints the mean and spread of these sizes, and by how much the log-odds of the unlabelled rows of
these microbatches change.
"""

import argparse

import torch
from split_heads import microbatches, parsed, write_and_compare
from torch import Tensor

from puicl_config import exit_on_input_error
from puicl_model import PUICL, find_weights, load_model


@exit_on_input_error
def main() -> None:
    """Insert, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument(
        "--after",
        type=lambda text: sorted(map(int, text.split(","))),
        default=[3, 5],
        help="numbers (from 1) of the blocks after which to insert one: 3,5",
    )
    arguments = parsed(parser)
    network, card = load_model(find_weights(arguments.model))
    layers = len(network.blocks)
    if card["model"]["norm"] != "rmsnorm":
        parser.error("only for networks with rmsnorm: a LayerNorm also removes the mean")
    if not all(1 <= number < layers for number in arguments.after):
        parser.error(f"--after takes numbers from 1 to {layers - 1}")
    batches = list(microbatches(arguments.shards, arguments.microbatches))
    sizes = output_sizes(network, batches)
    tensors = {
        name: tensor.clone()
        for name, tensor in network.state_dict().items()
        if not name.startswith("blocks.")
    }
    blocks: list[dict[str, Tensor]] = []
    for number, block in enumerate(network.blocks, start=1):
        blocks.append(block.state_dict())
        for _ in range(arguments.after.count(number)):
            size = sizes[number - 1]
            print(f"after block {number}: inputs of size {size.mean():.3f} ± {size.std():.3f}")
            blocks.append(passing(block.state_dict(), float(size.mean())))
    for number, held in enumerate(blocks):
        tensors |= {f"blocks.{number}.{name}": tensor.clone() for name, tensor in held.items()}
    card["model"]["layers"] = len(blocks)
    write_and_compare(arguments, network, tensors, card, batches)


@torch.no_grad()
def output_sizes(network: PUICL, batches: list[tuple[Tensor, int]]) -> list[Tensor]:
    """Root mean squares [cells] of the output cells of each block but the last."""
    found: list[list[Tensor]] = [[] for _ in network.blocks]
    hooks = [
        block.register_forward_hook(
            lambda _, __, h, sizes=sizes: sizes.append(h.square().mean(-1).sqrt().flatten())
        )
        for block, sizes in zip(network.blocks, found, strict=True)
    ]
    for batch in batches:
        network(*batch)
    for hook in hooks:
        hook.remove()
    return [torch.cat(sizes) for sizes in found[:-1]]


def passing(block: dict[str, Tensor], gain: float) -> dict[str, Tensor]:
    """A copy of `block` whose sublayers add nothing and whose norms all have gains `gain`."""
    copy = {name: tensor.clone() for name, tensor in block.items()}
    for name, tensor in copy.items():
        if ".out." in name or ".outer." in name:
            tensor.zero_()
        elif "norm" in name:
            tensor.fill_(gain)
    return copy


if __name__ == "__main__":
    main()
