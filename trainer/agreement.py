"""Do all processes start the same run? Each finds out alone where it stands."""

from collections.abc import Mapping, Sequence

import torch

from puicl_config import InputError
from shard_io import as_ranges
from trainer.world import World

_DIGITS = 15  # of a digest: as many as an int64 holds


def check_same_start(
    world: World, numbers: Mapping[str, int], digests: Mapping[str, str | None]
) -> None:
    """Raise one `InputError` on all processes where some of these, by name, are not the same."""
    mine = [*numbers.values(), *map(_as_number, digests.values())]
    rows = world.gather(torch.tensor([mine], device=world.device), world.size).tolist()
    texts = [(name, str) for name in numbers] + [(name, _as_text) for name in digests]
    starts = [{name: text(n) for (name, text), n in zip(texts, row, strict=True)} for row in rows]
    if differing := differences(starts):
        raise InputError(
            f"the processes do not start alike: {'; '.join(differing)}; all of them need the same "
            "config, and must see the same files in --out, --shards, train.heldout and "
            "train.init_from"
        )


def differences(starts: Sequence[Mapping[str, str]]) -> list[str]:
    """What differs between the processes, as `step is 5 (process 0), 0 (processes 1-3)`."""
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


def _as_number(digest: str | None) -> int:
    return -1 if digest is None else int(digest[:_DIGITS], 16)


def _as_text(number: int) -> str:
    return "none" if number < 0 else f"{number:0{_DIGITS}x}"
