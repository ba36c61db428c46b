"""The sample of microbatches that the preview reads: bounded, seeded and spread over stages."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prior_gen.structure import has_scm, source_of
from puicl_config import InputError, PriorConfig
from shard_io import Microbatch, PartId, ShardReader, Store, open_shards

# Opening a part hashes it, so a bound on bytes bounds the time for a large folder.
MAX_BYTES = 1_500_000_000
MAX_MICROBATCHES = 2000
# Seed words of the preview's independent random choices.
PURPOSES = {"parts": 0, "microbatches": 1, "examples": 2, "difficulty": 3}


@dataclass(frozen=True)
class Seen:
    """A sampled microbatch without its features.

    `negatives` holds the number of negatives among the `n_unlabeled` rows of each task, counted
    from the stored labels.
    """

    address: tuple[int, int, int]
    tags: dict[str, Any]
    n_labeled: int
    n_unlabeled: int
    negatives: tuple[int, ...]

    @property
    def stage(self) -> int:
        """The microbatch's stage, from 1."""
        return self.address[0]

    @property
    def source(self) -> str:
        """Where the features come from: one of `prior_gen.structure.SOURCES`."""
        return source_of(self.tags)

    @property
    def has_scm(self) -> bool:
        """Whether the features come from a structural causal model."""
        return has_scm(self.tags)


@dataclass(frozen=True)
class Sample:
    """The sampled microbatches `seen`, in order of address, and what the folder holds and lacks.

    `stages` are the sampled stages; `missing` are the missing parts of stages that were begun.
    """

    reader: ShardReader
    seed: int
    seen: tuple[Seen, ...]
    stages: tuple[int, ...]
    parts_opened: int
    published: tuple[PartId, ...]
    missing: tuple[PartId, ...]

    @property
    def prior(self) -> PriorConfig:
        """The plan's prior."""
        return self.reader.manifest.config.prior

    @property
    def published_stages(self) -> list[int]:
        """Stages of which at least one part is published."""
        return sorted({part.stage for part in self.published})

    @property
    def n_tasks(self) -> int:
        """Tasks in the sampled microbatches."""
        return sum(len(seen.negatives) for seen in self.seen)

    def of_stage(self, stage: int) -> list[Seen]:
        """The sampled microbatches of one stage."""
        return [seen for seen in self.seen if seen.stage == stage]

    def read(self, seen: Seen) -> Microbatch:
        """Read the whole microbatch, located by the plan's layout: a slice renumbers addresses."""
        part, position = self.reader.layout.locate(*seen.address)
        return self.reader.part(part)[position]

    def rng(self, purpose: str) -> np.random.Generator:
        """The random stream of one purpose; no picture's choices affect another's."""
        return generator(self.seed, PURPOSES[purpose])


def generator(seed: int, *key: int) -> np.random.Generator:
    """A local random stream with the preview's seed and a key for its purpose."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))


def take_sample(folder: Path | Store, seed: int) -> Sample:
    """Open some parts of `folder` and count the labels of some of their microbatches.

    If there are few, all parts and microbatches are read. Otherwise, parts of about `MAX_BYTES` in
    total (at least one) are spread evenly over the stages, and at most `MAX_MICROBATCHES`
    microbatches over those parts. Raises `InputError` if the folder holds no finished part, and
    `ShardError` if a part that is opened is damaged.
    """
    if isinstance(folder, Path) and not folder.is_dir():
        raise InputError(f"{folder} is not a folder of shards; give one that prior-gen wrote")
    reader = open_shards(folder)
    published = reader.published_parts()
    if not published:
        raise InputError(
            f"{folder} holds a plan but no finished part; generate some stages of it first"
        )
    parts = choose_parts(reader, published, generator(seed, PURPOSES["parts"]))
    rng = generator(seed, PURPOSES["microbatches"])
    seen = []
    for number, part_id in enumerate(parts):
        # At least 1, since at most `MAX_MICROBATCHES` parts are chosen.
        quota = MAX_MICROBATCHES * (number + 1) // len(parts)
        quota -= MAX_MICROBATCHES * number // len(parts)
        positions = np.array(reader.positions(part_id), dtype=int)
        if len(positions) > quota:
            positions = np.sort(rng.choice(positions, quota, replace=False))
        part = reader.part(part_id)
        seen += [_look(part[int(position)]) for position in positions]
    begun = sorted({part.stage for part in published})
    return Sample(
        reader=reader,
        seed=seed,
        seen=tuple(seen),
        stages=tuple(sorted({part.stage for part in parts})),
        parts_opened=len(parts),
        published=tuple(published),
        missing=tuple(reader.missing_parts(begun)),
    )


def choose_parts(
    reader: ShardReader, published: Sequence[PartId], rng: np.random.Generator
) -> list[PartId]:
    """Parts to open, in order: equally many of every stage, or one of each evenly spaced stage."""
    sizes = [reader.entry(part).n_bytes for part in published]
    affordable = min(int(MAX_BYTES // max(float(np.mean(sizes)), 1)), MAX_MICROBATCHES)
    if affordable >= len(published):
        return list(published)
    stages = sorted({part.stage for part in published})
    if affordable < len(stages):
        stages = evenly(stages, max(affordable, 1))
    each = max(affordable // len(stages), 1)
    chosen: list[PartId] = []
    for stage in stages:
        here = [part for part in published if part.stage == stage]
        picks = rng.choice(len(here), min(each, len(here)), replace=False)
        chosen += [here[pick] for pick in sorted(picks)]
    return chosen


def evenly(values: Sequence, count: int) -> list:
    """`count` evenly spaced `values` including the first and last; all if there are fewer.

    A `count` of one gives the last value.
    """
    if count >= len(values):
        return list(values)
    if count == 1:
        return [values[-1]]
    return [values[round(place)] for place in np.linspace(0, len(values) - 1, count)]


def stage_groups(stages: Sequence[int], count: int) -> list[list[int]]:
    """Divide `stages`, in order, into at most `count` runs of nearly equal length."""
    return [list(map(int, group)) for group in np.array_split(stages, min(count, len(stages)))]


def missing_in_words(missing: Sequence[PartId]) -> str:
    """Text such as `stages 1, 4: parts 1-7`; stages that lack the same parts are grouped."""
    numbers: dict[int, list[int]] = {}
    for part in missing:
        numbers.setdefault(part.stage, []).append(part.number)
    alike: dict[str, list[int]] = {}
    for stage, lacking in numbers.items():
        alike.setdefault(ranges_in_words(lacking), []).append(stage)
    return "; ".join(
        f"{'stage' if len(stages) == 1 else 'stages'} {ranges_in_words(stages)}: "
        f"{'part' if lacking.isdigit() else 'parts'} {lacking}"
        for lacking, stages in alike.items()
    )


def ranges_in_words(numbers: Sequence[int]) -> str:
    """[1, 2, 3, 7] as `1-3, 7`, and [1, 4, 7, 10, 11] as `1-10 by 3, 11`."""
    pieces, start = [], 0
    while start < len(numbers):
        end = start + 1
        step = numbers[end] - numbers[start] if end < len(numbers) else 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        if step > 1 and end - start < 4:
            end = start + 1
        run = numbers[start:end]
        shown = str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
        pieces.append(shown + (f" by {step}" if len(run) > 1 and step > 1 else ""))
        start = end
    return ", ".join(pieces)


def _look(batch: Microbatch) -> Seen:
    return Seen(
        address=batch.address,
        tags=batch.tags,
        n_labeled=batch.n_labeled,
        n_unlabeled=batch.y.shape[1],
        negatives=tuple(int(count) for count in (batch.y == 0).sum(axis=1)),
    )
