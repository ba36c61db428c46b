"""Split heads of the attention within columns into several that attend almost alike.

    python benchmarks/split_heads.py --model default --parts 4 --shards heldout/ --out M.safetensors
    torchrun trainer/main.py --config CONFIG --shards DIR \\
        model.row_heads=8 train.init_from=M.safetensors

A head's scores are a bilinear form of its inputs, and a wide head's form is nearly of low rank on
the inputs that the network gives it. Each head of D dimensions becomes `--parts` heads of D / parts
dimensions. All get the same queries and keys, those of the form's best approximation of that rank,
and each gets its own part of the values. So the network keeps what it has learnt, and training can
make the heads diverge. "Best" weights the form by the second moments of the queries' inputs, and of
the keys' inputs about their mean over the rows (to which a softmax is blind), on some microbatches
of `--shards`.

Prints for each block and head the share of its scores' squares that is kept, and by how much the
log-odds of the unlabelled rows of these microbatches change.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import torch
from torch import Tensor
from where_to import output_file

from puicl_config import exit_on_input_error
from puicl_model import PUICL, find_weights, load_model, save_model
from puicl_model.blocks import Attention, Block
from shard_io import open_shards


@exit_on_input_error
def main() -> None:
    """Split, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--parts", type=int, default=4)
    arguments = parsed(parser)
    network, card = load_model(find_weights(arguments.model))
    heads = card["model"]["row_heads"] or card["model"]["heads"]
    size = card["model"]["embedding_size"] // heads
    if arguments.parts < 1 or size % arguments.parts:
        parser.error(f"--parts must divide {size}, which is how many dimensions a head has")
    batches = list(microbatches(arguments.shards, arguments.microbatches))
    moments = input_moments(network, batches)
    tensors = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    for block, (asking, asked) in enumerate(moments):
        name = f"blocks.{block}.row_attention.qkv"
        weight, bias = tensors[f"{name}.weight"].double(), tensors[f"{name}.bias"].double()
        kept = split(weight, bias, asking, asked, heads, arguments.parts)
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = weight.float(), bias.float()
        print(f"block {block}: " + ", ".join(f"{share:.5f}" for share in kept))
    card["model"]["row_heads"] = heads * arguments.parts
    write_and_compare(arguments, network, tensors, card, batches)


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parse the command line, with the options of all scripts that change a network."""
    parser.add_argument("--shards", required=True)
    parser.add_argument("--microbatches", type=int, default=24)
    parser.add_argument(
        "--bfloat16", action="store_true", help="round the written weights: half the size"
    )
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    output_file(arguments.out)
    return arguments


def write_and_compare(
    arguments: argparse.Namespace,
    network: PUICL,
    tensors: dict[str, Tensor],
    card: dict,
    batches: list[tuple[Tensor, int]],
) -> None:
    """Write a network derived from `network`, and print by how much its log-odds differ."""
    if arguments.bfloat16:
        tensors = {name: tensor.bfloat16() for name, tensor in tensors.items()}
    save_model(arguments.out, tensors, card)
    other, _ = load_model(arguments.out)
    with torch.no_grad():
        before, after = (
            torch.cat([log_odds(each, *batch).flatten() for batch in batches])
            for each in (network, other)
        )
    change = (after - before).abs()
    print(
        f"log-odds change by {change.mean():.4f} on average, {change.max():.3f} at most "
        f"(their standard deviation is {before.std():.2f}): {arguments.out}"
    )


def microbatches(folder: str, most: int) -> Iterator[tuple[Tensor, int]]:
    """Features [T, R, d], number of labelled rows: at most `most` microbatches, evenly spaced."""
    shards = open_shards(folder)
    places = [(part, n) for part in shards.published_parts() for n in shards.positions(part)]
    for part, position in places[:: max(1, len(places) // most)][:most]:
        batch = shards.part(part)[position]
        yield torch.from_numpy(batch.x).float(), batch.n_labeled


def log_odds(network: PUICL, x: Tensor, n_labeled: int) -> Tensor:
    """Log-odds [T, R - n_labeled] of the unlabelled rows."""
    negative, positive = network(x, n_labeled).unbind(-1)
    return positive - negative


@torch.no_grad()
def input_moments(network: PUICL, batches: list[tuple[Tensor, int]]) -> list[tuple[Tensor, Tensor]]:
    """For each block, second moments of the inputs of queries and of keys.

    Queries' inputs have a one appended, [E + 1, E + 1]; keys' inputs are centred by their mean over
    the rows, [E, E].
    """
    blocks = [cast(Block, block) for block in network.blocks]
    e = blocks[0].row_attention.qkv.in_features
    totals = [(torch.zeros(e + 1, e + 1).double(), torch.zeros(e, e).double()) for _ in blocks]

    def gather(block: int, module: Attention, inputs: tuple[Tensor, ...], _: object) -> None:
        asking, asked = (tensor.double() for tensor in inputs)
        asking = torch.nn.functional.pad(asking.flatten(0, -2), (0, 1), value=1.0)
        asked = (asked - asked.mean(module.axis, keepdim=True)).flatten(0, -2)
        for total, cells in zip(totals[block], (asking, asked), strict=True):
            total += cells.T @ cells / len(cells)

    hooks = [
        block.row_attention.register_forward_hook(partial(gather, number))
        for number, block in enumerate(blocks)
    ]
    for batch in batches:
        network(*batch)
    for hook in hooks:
        hook.remove()
    return totals


def split(
    weight: Tensor, bias: Tensor, asking: Tensor, asked: Tensor, heads: int, parts: int
) -> list[float]:
    """Split queries and keys in `weight` [3 E, E] and `bias` [3 E], in place.

    asking, asked: second moments of the inputs of queries and keys, see `input_moments`. Returns
    for each head the share of its scores' squares that is kept.
    """
    e = weight.shape[1]
    size = e // heads
    rank = size // parts
    (root, back), (root_k, back_k) = root_and_inverse(asking), root_and_inverse(asked)
    kept = []
    for head in range(heads):
        rows = torch.arange(head * size, (head + 1) * size)
        queries = torch.cat([weight[rows], bias[rows, None]], dim=1)
        u, s, v = torch.linalg.svd(root @ (queries.T @ weight[e + rows]) @ root_k)
        kept.append(float((s[:rank] ** 2).sum() / (s**2).sum()))
        # Scores are divided by the square root of a head's size, which is smaller now.
        queries = (back @ u[:, :rank] * s[:rank].sqrt()).T * parts**-0.5
        keys = (back_k @ v[:rank].T * s[:rank].sqrt()).T
        balance = (keys.norm() / queries.norm()).sqrt()
        for part in rows.split(rank):
            weight[part], bias[part] = queries[:, :e] * balance, queries[:, e] * balance
            weight[e + part], bias[e + part] = keys / balance, 0.0
    return kept


def root_and_inverse(moments: Tensor) -> tuple[Tensor, Tensor]:
    """The symmetric square root of a matrix of second moments, and its inverse."""
    values, vectors = torch.linalg.eigh(moments)
    # In directions that inputs never take, queries and keys would be unbounded.
    values = values.clamp_min(values[-1] * 1e-9)
    return vectors * values.sqrt() @ vectors.T, vectors / values.sqrt() @ vectors.T


if __name__ == "__main__":
    main()
