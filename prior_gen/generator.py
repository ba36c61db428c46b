"""The parallel generator: parts in any order, by any number of workers, to the same bytes."""

import contextlib
import errno
import functools
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import joblib

from prior_gen.backends import Backend, parallel_backend
from prior_gen.canary import canary_digest, software
from prior_gen.estimate import estimate
from prior_gen.microbatch import generate_microbatch
from prior_gen.seeding import Split
from prior_gen.stages import WHOLE, PartRange, share_of
from puicl_config import Config, PriorConfig, ProgressReport
from shard_io import (
    Manifest,
    Microbatch,
    PartEntry,
    PartId,
    ShardError,
    Store,
    claim_folder,
    open_shards,
    publish_part,
    refresh_manifest,
    store_of,
    sweep_staging,
)

MakePart = Callable[[Manifest, Path | Store, PartId], PartEntry]


@dataclass(frozen=True)
class GenerationResult:
    """What one run of the generator wrote and what it found done."""

    written: tuple[PartEntry, ...]
    skipped: int
    seconds: float


def generate_shards(
    config: Config,
    folder: Path | Store,
    stages: Sequence[int],
    split: Split = "train",
    jobs: int | None = None,
    backend: Backend = "loky",
    address: str | None = None,
    share: PartRange = WHOLE,
) -> GenerationResult:
    """Write all parts of `stages` that `folder` lacks, with `jobs` workers (default: all cores).

    `backend` and `address` say where the workers live: see `prior_gen.backends`. `share` (i, n)
    leaves all but the i-th of n shares of the parts to others.

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
    if isinstance(folder, Path):
        sweep_staging(folder)
    reader = open_shards(folder)
    # Shares are cut from all parts, not from those missing now: jobs of one array start at
    # different times and must still agree on whose a part is.
    wanted = [part for stage in stages for part in manifest.layout.parts_of_stage(stage)]
    missing = set(reader.missing_parts(stages))
    mine = share_of(wanted, share)
    parts = [part for part in mine if part in missing]
    if isinstance(folder, Path):
        check_space(folder, estimate(config, parts, split).bytes)
    skipped = len(mine) - len(parts)
    return write_parts(manifest, folder, parts, jobs, backend, address, skipped)


def write_parts(
    manifest: Manifest,
    folder: Path | Store,
    parts: Sequence[PartId],
    jobs: int | None = None,
    backend: Backend = "loky",
    address: str | None = None,
    skipped: int = 0,
    make: MakePart | None = None,
) -> GenerationResult:
    """Make and publish `parts`, then merge all entries into the manifest.

    `make` does the work of one part; left out, it is generated from its seeds.
    """
    make = make or write_part
    prior = manifest.config.prior
    n_tasks = sum(len(manifest.layout.span(part)) for part in parts) * prior.tasks_per_microbatch
    jobs = min(jobs or joblib.cpu_count(), max(len(parts), 1))
    with (
        ProgressReport("prior-gen", n_tasks, "tasks") as progress,
        parallel_backend(backend, jobs, address),
        _watching(folder, manifest, parts, progress),
    ):
        try:
            joblib.Parallel()(joblib.delayed(make)(manifest, folder, part) for part in parts)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            done = len(parts) - len(_unpublished(folder, parts))
            raise ShardError(
                f"the disk of {folder} is full after {done} of {len(parts)} parts; what is "
                "published is whole: make room and run the same command again"
            ) from error
        finally:
            refresh_manifest(folder)
    reader = open_shards(folder)
    written = tuple(reader.entry(part) for part in sorted(parts))
    return GenerationResult(written, skipped, max(progress.seconds, 1e-9))


def write_part(manifest: Manifest, folder: Path | Store, part: PartId) -> PartEntry:
    """Generate and publish one part; the work of one worker in one go."""
    check_canary(manifest)
    return publish_part(folder, part, make_microbatches(manifest, part), manifest.storage)


def make_microbatches(manifest: Manifest, part: PartId) -> list[Microbatch]:
    """What a part holds, made from its seeds."""
    config, layout = manifest.config, manifest.layout
    return [
        generate_microbatch(config, *layout.address(part.stage, number), manifest.split)
        for number in layout.span(part)
    ]


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


def check_space(folder: Path, needed: float) -> None:
    """Raise `ShardError` where the disk of `folder` has less than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ShardError(
            f"these shards need about {needed / 1e9:.3g} GB and the disk of {folder} has "
            f"{free / 1e9:.3g} GB free; make room, or generate fewer stages"
        )


def _unpublished(folder: Path | Store, parts: Sequence[PartId]) -> list[PartId]:
    published = store_of(folder).present([part.entry_path for part in parts])
    return [part for part in parts if part.entry_path not in published]


@contextlib.contextmanager
def _watching(
    folder: Path | Store, manifest: Manifest, parts: Sequence[PartId], progress: ProgressReport
) -> Iterator[None]:
    """Show progress by what is published: the same for every backend, and the truth.

    A part that is made again (repair) counts once its entry is newer than the start.
    """
    size = {part: len(manifest.layout.span(part)) for part in parts}
    per_microbatch = manifest.config.prior.tasks_per_microbatch
    store, start, over = store_of(folder), time.time(), threading.Event()
    waiting = list(parts)

    def look() -> None:
        nonlocal waiting
        try:
            published = store.present([part.entry_path for part in waiting], start)
        except ShardError:
            return  # a network that fails now and then must not end a run for its progress bar
        done = [part for part in waiting if part.entry_path in published]
        waiting = [part for part in waiting if part not in set(done)]
        if done:
            count = len(parts) - len(waiting)
            note = f"{count}/{len(parts)} parts, stage {max(done).stage}"
            progress.advance(per_microbatch * sum(size[part] for part in done), note)

    def watch() -> None:
        while not over.wait(store.look_every):
            look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        look()


@functools.lru_cache(maxsize=4)
def _canary_here(prior: PriorConfig) -> str:
    return canary_digest(prior)
