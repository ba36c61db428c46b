"""The index of a slice: the surviving microbatches of each stage and the addresses they answer."""

import re
from dataclasses import dataclass
from typing import Any

from shard_io.commands import as_ranges
from shard_io.layout import Layout


@dataclass(frozen=True)
class SliceIndex:
    """A subset of a plan's microbatches that still answers every address of its stages.

    `survivors` holds for each stage the numbers of the microbatches that satisfy `where`,
    ascending. The survivor at index m modulo their count answers microbatch number m of the stage.
    """

    where: str
    survivors: dict[int, tuple[int, ...]]

    def reuse(self, layout: Layout, stage: int) -> float:
        """How often one pass over the stage reads each survivor, on average."""
        return layout.microbatches_in_stage(stage) / len(self.survivors[stage])

    def to_plain(self, layout: Layout) -> dict[str, Any]:
        """The index as JSON values, for the manifest."""
        return {
            "where": self.where,
            "stages": {
                str(stage): {
                    "survivors": as_ranges(numbers),
                    "count": len(numbers),
                    "of": layout.microbatches_in_stage(stage),
                    "reuse": round(self.reuse(layout, stage), 6),
                }
                for stage, numbers in self.survivors.items()
            },
        }


def slice_from_plain(raw: Any, layout: Layout) -> SliceIndex | None:
    """The index from a manifest's JSON values; None if these are None.

    Raises `ValueError`, `KeyError`, `TypeError` or `AttributeError` if it is malformed.
    """
    if raw is None:
        return None
    index = SliceIndex(
        where=raw["where"],
        survivors={
            int(stage): _from_text(facts["survivors"], layout.microbatches_in_stage(int(stage)))
            for stage, facts in raw["stages"].items()
        },
    )
    if not isinstance(index.where, str) or index.to_plain(layout) != raw:
        raise ValueError("its slice contradicts itself")
    return index


def _from_text(text: str, total: int) -> tuple[int, ...]:
    numbers: list[int] = []
    for piece in text.split(","):
        match = re.fullmatch(r"(\d{1,12})(?:-(\d{1,12}))?", piece)
        if not match or int(match[2] or match[1]) >= total:
            raise ValueError(f"its slice names survivors {piece!r} of {total} microbatches")
        numbers.extend(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(numbers)
