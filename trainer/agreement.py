"""Check that all processes start the same run, since each reads its state independently."""

from collections.abc import Mapping, Sequence

import torch

from puicl_config import InputError
from shard_io import as_ranges
from trainer.world import World


def short(digest: str) -> str:
    """A digest's prefix, long enough to tell two apart."""
    return digest[:15]


def check_same_start(world: World, start: Mapping[str, object]) -> None:
    """Raise the same `InputError` on all processes if values of `start` differ between them.

    Values are compared, and reported, as text.
    """
    if differing := differences(gathered(world, start)):
        raise InputError(
            f"the processes do not start alike: {'; '.join(differing)}; all of them need the same "
            "config, and must see the same files in --out, --shards, train.heldout and "
            "train.init_from"
        )


def gathered(world: World, start: Mapping[str, object]) -> list[dict[str, str]]:
    """The `start` of each process as text, by rank; all must give the same names."""
    # Exchange lengths first, then the bytes, padded to the longest.
    mine = torch.tensor([list("\0".join(map(str, start.values())).encode())], dtype=torch.uint8)
    lengths = world.gather(torch.tensor([[mine.shape[1]]], device=world.device), world.size)
    row = torch.zeros(1, int(lengths.max()), dtype=torch.uint8, device=world.device)
    row[:, : mine.shape[1]] = mine
    rows = world.gather(row, world.size).tolist()
    texts = [bytes(row[:n]).decode() for row, (n,) in zip(rows, lengths.tolist(), strict=True)]
    return [dict(zip(start, text.split("\0"), strict=True)) for text in texts]


def differences(starts: Sequence[Mapping[str, str]]) -> list[str]:
    """Differences between the processes, as `step is 5 (process 0), 0 (processes 1-3)`."""
    told = []
    for name in starts[0]:
        ranks: dict[str, list[int]] = {}
        for rank, start in enumerate(starts):
            ranks.setdefault(start[name], []).append(rank)
        if len(ranks) > 1:
            told.append(f"{name} is " + ", ".join(f"{v} ({_who(r)})" for v, r in ranks.items()))
    return told


def _who(ranks: Sequence[int]) -> str:
    return f"process {ranks[0]}" if len(ranks) == 1 else f"processes {as_ranges(ranks)}"
