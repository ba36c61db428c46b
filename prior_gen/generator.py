"""The parallel generator: parts in any order, by any number of workers, to the same bytes."""

import errno
import functools
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib

from prior_gen.canary import canary_digest, software
from prior_gen.estimate import estimate
from prior_gen.microbatch import generate_microbatch
from prior_gen.seeding import Split
from puicl_config import Config, PriorConfig, ProgressReport
from shard_io import (
    Manifest,
    PartEntry,
    PartId,
    ShardError,
    claim_folder,
    merge_entries,
    open_shards,
    publish_part,
    sweep_staging,
)


@dataclass(frozen=True)
class GenerationResult:
    """What one run of the generator wrote and what it found done."""

    written: tuple[PartEntry, ...]
    skipped: int
    seconds: float


def generate_shards(
    config: Config,
    folder: Path,
    stages: Sequence[int],
    split: Split = "train",
    jobs: int | None = None,
) -> GenerationResult:
    """Write all parts of `stages` that `folder` lacks, with `jobs` processes (default: all cores).

    Raises `ShardError` where the folder holds other shards, the disk has too little room or runs
    full, or this machine makes other bits than the folder's first writer.
    """
    ours = Manifest(
        config=Config(prior=config.prior, shards=config.shards),
        split=split,
        canary=canary_digest(config.prior),
        software=software(),
    )
    manifest = claim_folder(folder, ours)
    check_canary(manifest)
    sweep_staging(folder)
    reader = open_shards(folder)
    parts = reader.missing_parts(stages)
    n_wanted = sum(len(manifest.layout.parts_of_stage(stage)) for stage in stages)
    size = estimate(config, parts, split)
    _check_space(folder, size.bytes)
    return write_parts(manifest, folder, parts, jobs, skipped=n_wanted - len(parts))


def write_parts(
    manifest: Manifest,
    folder: Path,
    parts: Sequence[PartId],
    jobs: int | None = None,
    skipped: int = 0,
) -> GenerationResult:
    """Generate and publish `parts`, then merge all entries into the manifest."""
    prior = manifest.config.prior
    per_part = prior.tasks_per_microbatch
    n_tasks = sum(len(manifest.layout.span(part)) for part in parts) * per_part
    jobs = min(jobs or joblib.cpu_count(), max(len(parts), 1))
    written = []
    with (
        ProgressReport("prior-gen", n_tasks, "tasks") as progress,
        joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
    ):
        results = joblib.Parallel(return_as="generator_unordered")(
            joblib.delayed(write_part)(manifest, folder, part) for part in parts
        )
        try:
            for entry in results:
                written.append(entry)
                progress.advance(
                    entry.n_tasks, f"{len(written)}/{len(parts)} parts, stage {entry.stage}"
                )
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise ShardError(
                f"the disk of {folder} is full after {len(written)} of {len(parts)} parts; what "
                "is published is whole: make room and run the same command again"
            ) from error
        finally:
            refresh_manifest(folder)
        seconds = max(progress.seconds, 1e-9)
    return GenerationResult(tuple(sorted(written, key=lambda entry: entry.id)), skipped, seconds)


def write_part(manifest: Manifest, folder: Path, part: PartId) -> PartEntry:
    """Generate and publish one part; the work of one worker in one go."""
    check_canary(manifest)
    config, layout = manifest.config, manifest.layout
    microbatches = [
        generate_microbatch(config, *layout.address(part.stage, number), manifest.split)
        for number in layout.span(part)
    ]
    return publish_part(folder, part, microbatches, manifest.storage)


def check_canary(manifest: Manifest) -> None:
    """Refuse to write where this process would make other bits than the folder holds."""
    if _canary_here(manifest.config.prior) == manifest.canary:
        return
    here = software()
    differing = [
        f"{name} is {here.get(name)} here, {there} there"
        for name, there in manifest.software.items()
        if here.get(name) != there
    ]
    raise ShardError(
        "this machine makes other bits than the one that began these shards ("
        + ("; ".join(differing) or "the recorded software is the same: it may be the processor")
        + "); go on with the same software and instruction set, or in another folder"
    )


def refresh_manifest(folder: Path) -> None:
    """Merge the entries of all published parts into the folder's manifest."""
    reader = open_shards(folder)
    entries = {
        part.name: json.loads(reader.entry(part).to_bytes()) for part in reader.published_parts()
    }
    merge_entries(folder, reader.manifest, entries)


@functools.lru_cache(maxsize=4)
def _canary_here(prior: PriorConfig) -> str:
    return canary_digest(prior)


def _check_space(folder: Path, needed: float) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ShardError(
            f"these shards need about {needed / 1e9:.3g} GB and the disk of {folder} has "
            f"{free / 1e9:.3g} GB free; make room, or generate fewer stages"
        )
