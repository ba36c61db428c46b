"""The layout of a folder of shards, and which part holds a microbatch. Pure functions only.

manifest.json                              the plan, how it is stored, and all entries merged
entries/stage-0001-part-000.json           published last: the part exists once this exists
parts/stage-0001-part-000.zarr/            zarr: x, y, and the tags as attributes
parts/stage-0001-part-000.tar              webdataset: one sample per microbatch
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from puicl_config import PriorConfig, Split

MANIFEST = "manifest.json"
ENTRIES = "entries"
PARTS = "parts"
STAGING = ".staging"
SUFFIXES = {"zarr": ".zarr", "webdataset": ".tar"}
# Other files that a folder of shards may hold.
BYSTANDERS = frozenset({"README.md", ".gitignore"})
# Subfolders of a folder of shards.
OURS = frozenset({ENTRIES, PARTS, STAGING})


def other_homes(listing: Iterable[str]) -> set[str]:
    """Names of subfolders that hold other shards, from the `listing` of all files of a folder."""
    end = f"/{MANIFEST}"
    homes = {path.removesuffix(end) for path in listing if path.endswith(end)}
    return {home for home in homes if "/" not in home} - OURS


@dataclass(frozen=True)
class PlanId:
    """Identity of the data in a part or folder: the plan's digest and the split.

    It does not include what may differ between writers of one folder or after a conversion (stages,
    format, codec, machine).
    """

    digest: str
    split: Split

    def __str__(self) -> str:
        return f"plan {self.digest[:16]}, split {self.split}"


@dataclass(frozen=True, order=True)
class PartId:
    """Address of a part: stage from 1, number within the stage from 0."""

    stage: int
    number: int

    @property
    def name(self) -> str:
        """File name stem, the same in every format."""
        return f"stage-{self.stage:04d}-part-{self.number:03d}"

    @property
    def entry_path(self) -> str:
        """Path of the part's own entry, relative to the folder."""
        return f"{ENTRIES}/{self.name}.json"

    @staticmethod
    def of_entry(path: str) -> "PartId | None":
        """The part whose entry has this path; None if it is not the path of an entry."""
        match = re.fullmatch(rf"{ENTRIES}/stage-(\d{{4,9}})-part-(\d{{3,9}})\.json", path)
        part = match and PartId(int(match[1]), int(match[2]))
        return part if part and part.entry_path == path else None

    def data_path(self, shard_format: str) -> str:
        """Path of the part's data (a folder for zarr, a file for webdataset)."""
        return f"{PARTS}/{self.name}{SUFFIXES[shard_format]}"


@dataclass(frozen=True)
class Layout:
    """Division of a plan into parts: a number of nearly equal parts per stage, in order."""

    prior: PriorConfig
    parts_per_stage: int

    def microbatches_in_stage(self, stage: int) -> int:
        """Number of microbatches of one stage; the last stage of the tail may be short."""
        return self.prior.steps_in_stage(stage) * self.prior.microbatches_per_step

    def parts_of_stage(self, stage: int) -> list[PartId]:
        """The stage's parts, never more than it has microbatches."""
        count = min(self.parts_per_stage, self.microbatches_in_stage(stage))
        return [PartId(stage, number) for number in range(count)]

    def span(self, part: PartId) -> range:
        """Numbers of the part's microbatches within its stage."""
        total = self.microbatches_in_stage(part.stage)
        count = min(self.parts_per_stage, total)
        return range(part.number * total // count, (part.number + 1) * total // count)

    def address(self, stage: int, number: int) -> tuple[int, int, int]:
        """[stage, step, index] of the stage's microbatch `number`."""
        step, index = divmod(number, self.prior.microbatches_per_step)
        return stage, step, index

    def addresses(self, part: PartId) -> list[tuple[int, int, int]]:
        """[stage, step, index] of each of the part's microbatches, in order."""
        return [self.address(part.stage, number) for number in self.span(part)]

    def locate(self, stage: int, step: int, index: int) -> tuple[PartId, int]:
        """The part that holds microbatch [stage, step, index], and its position within the part.

        Raises `KeyError` if the plan has no such microbatch.
        """
        prior = self.prior
        if not (
            0 <= step < prior.steps_in_stage(stage) and 0 <= index < prior.microbatches_per_step
        ):
            raise KeyError(f"the plan has no microbatch [{stage}, {step}, {index}]")
        number = step * prior.microbatches_per_step + index
        total = self.microbatches_in_stage(stage)
        count = min(self.parts_per_stage, total)
        part = PartId(stage, ((number + 1) * count - 1) // total)
        return part, number - self.span(part).start
