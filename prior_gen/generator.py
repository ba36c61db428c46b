"""The parallel generator: the same bytes whatever the order of parts and the number of workers."""

import contextlib
import errno
import functools
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from prior_gen.canary import canary_digest, software, tasks_digest
from prior_gen.estimate import room, worker_count
from prior_gen.microbatch import generate_microbatch
from prior_gen.stages import WHOLE, PartRange, share_of
from prior_gen.watching import watching
from puicl_config import Config, PriorConfig, Split, nearest_there, volume
from puicl_config.workers import (
    Backend,
    check_backend,
    drop_if_told,
    run_all,
    signals_deferred,
)
from shard_io import (
    TASKS,
    Manifest,
    Microbatch,
    PartEntry,
    PartId,
    ShardError,
    Store,
    check_claim,
    claim_folder,
    open_shards,
    publish_part,
    refresh_manifest,
    store_of,
    sweep_staging,
    told_as_shard_error,
)

MakePart = Callable[[Manifest, Path | Store, PartId], PartEntry]


@dataclass(frozen=True)
class GenerationResult:
    """What one run of the generator wrote, its duration, and how many parts already existed."""

    written: tuple[PartEntry, ...]
    seconds: float
    skipped: int = 0


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
    """Write all parts of `stages` that `folder` lacks, with `jobs` workers.

    By default there is one worker per core, fewer if there is little to make (`worker_count`).
    `backend` and `address` say where the workers run: see `puicl_config.workers`. `share` (i, n)
    restricts this run to the i-th of n shares of the parts.

    Raises `InputError`, before anything is written, if the backend is not installed or `folder` is
    a read-only URL. Raises `ShardError` if the folder holds other shards, the disk has too little
    room or runs full, a generated feature is not finite, or this machine produces different bits
    from the folder's first writer.
    """
    check_backend(backend, address)
    with signals_deferred():  # Python swallows exceptions raised while it searches for libraries
        ours = manifest_here(config, split)
    todo = look_ahead(folder, ours, stages, share)
    if isinstance(folder, Path):
        check_space(folder, room(config, todo.missing, split, free_space(folder)))
    with told_as_shard_error(folder):
        manifest = claim_folder(folder, ours)
        check_canary(manifest)
        if isinstance(folder, Path):
            sweep_staging(folder)
    # Look again, since another writer may have begun the folder meanwhile.
    todo = look_ahead(folder, manifest, stages, share)
    result = write_parts(manifest, folder, todo.missing, jobs, backend, address)
    return replace(result, skipped=todo.present)


def manifest_here(config: Config, split: Split) -> Manifest:
    """The manifest that this machine would write to a new folder."""
    return Manifest(
        config=Config(prior=config.prior, shards=config.shards),
        split=split,
        canary=_canary_here(config.prior),
        software={**software(), TASKS: _tasks_here(config.prior)},
    )


@dataclass(frozen=True)
class Todo:
    """The parts that a run still has to make, and how many of the requested ones already exist."""

    missing: tuple[PartId, ...]
    present: int


def look_ahead(
    folder: Path | Store, manifest: Manifest, stages: Sequence[int], share: PartRange = WHOLE
) -> Todo:
    """Look up which parts a run would have to make; nothing is written.

    Raises `InputError` or `ShardError` if the run would be refused.
    """
    # Cut shares from all parts, not from those missing now: the jobs of an array start at
    # different times and must still agree on who makes which part.
    wanted = [part for stage in stages for part in manifest.layout.parts_of_stage(stage)]
    mine = share_of(wanted, share)
    claimed = check_claim(folder, manifest)
    if claimed is None:
        return Todo(tuple(mine), present=0)
    check_canary(claimed)
    missing = set(open_shards(folder).missing_parts(stages))
    lacking = tuple(part for part in mine if part in missing)
    return Todo(lacking, len(mine) - len(lacking))


def write_parts(
    manifest: Manifest,
    folder: Path | Store,
    parts: Sequence[PartId],
    jobs: int | None = None,
    backend: Backend = "loky",
    address: str | None = None,
    make: MakePart | None = None,
) -> GenerationResult:
    """Make and publish `parts`, then merge all entries into the manifest.

    `make` makes one part; by default, the part is generated from its seeds. Raises `ShardError` if
    the disk runs full, if the folder holds an entry that is damaged or of another plan, and
    whatever `make` raises.
    """
    per_microbatch = manifest.config.prior.tasks_per_microbatch
    tasks = {part: len(manifest.layout.span(part)) * per_microbatch for part in parts}
    jobs = worker_count(jobs, len(parts), sum(tasks.values()))
    # Workers of a cluster may run in another working directory.
    there = folder.absolute() if isinstance(folder, Path) else folder
    calls = [(manifest, there, part) for part in parts]
    with told_as_shard_error(folder), watching(folder, tasks) as progress:
        try:
            run_all(make or write_part, calls, jobs, backend, address)
        except BaseException as error:
            # Which parts were made is unknown, so none is required here. If the manifest cannot be
            # written (full disk, damaged entry), that must not hide the original error.
            with contextlib.suppress(OSError, ShardError):
                refresh_manifest(folder)
            if not (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)):
                raise
            done = len(store_of(folder).present([part.entry_path for part in parts]))
            raise ShardError(
                f"the disk of {folder} is full after {done} of {len(parts)} parts; what is "
                "published is whole: make room and run the same command again"
            ) from error
        refresh_manifest(folder, parts)
    reader = open_shards(folder)
    written = tuple(reader.entry(part) for part in sorted(parts))
    return GenerationResult(written, max(progress.seconds, 1e-9))


def write_part(manifest: Manifest, folder: Path | Store, part: PartId) -> PartEntry:
    """Generate and publish one part: one worker's unit of work.

    Raises `ShardError` if this machine produces different bits or a feature is not finite, and
    `Dropped` if the run ends meanwhile.
    """
    check_canary(manifest)
    made = make_microbatches(manifest, part)
    return publish_part(folder, part, made, manifest.storage, manifest.plan_id)


def make_microbatches(manifest: Manifest, part: PartId) -> list[Microbatch]:
    """Generate the microbatches of a part from their seeds.

    Raises `Dropped` if the run ends meanwhile, and `ShardError` if the plan leads to features that
    are not finite, so that none of these reaches a shard.
    """
    config, layout = manifest.config, manifest.layout
    made = []
    for number in layout.span(part):
        drop_if_told()
        address = layout.address(part.stage, number)
        batch = generate_microbatch(config, *address, manifest.split)
        if not np.isfinite(batch.x).all():
            raise ShardError(
                f"microbatch {address} has features that are not finite: the plan's numbers are "
                "too large (see prior.sigma_init, prior.sigma_noise, prior.state_clamp and the "
                "sizes in prior.extensions)"
            )
        made.append(batch)
    return made


def check_canary(manifest: Manifest) -> None:
    """Raise `ShardError` if this process would produce different bits from those in the folder."""
    prior = manifest.config.prior
    # Older versions did not record the digest of tasks.
    tasks = manifest.software.get(TASKS)
    if _canary_here(prior) == manifest.canary and tasks in (None, _tasks_here(prior)):
        return
    here = {**software(), TASKS: tasks}  # the digest counts as equal: it would explain nothing
    differing = [
        f"{name} is {here.get(name)} here, {there} there"
        for name, there in manifest.software.items()
        if here.get(name) != there
    ]
    raise ShardError(
        "this machine produces different bits from the one that began these shards ("
        + ("; ".join(differing) or "the recorded software is the same: it may be the processor")
        + "); continue with the same software and instruction set, or in another folder. If the "
        "code of the prior was changed, raise its number in puicl_config/digests.py, too"
    )


def check_space(folder: Path, needed: float) -> None:
    """Raise `ShardError` if the disk of `folder` has fewer than `needed` bytes free."""
    free = free_space(folder)
    if needed > free:
        raise ShardError(
            f"these shards need about {volume(needed)} and the disk of {folder} has "
            f"{volume(free)} free; make room, or generate fewer stages"
        )


def free_space(folder: Path) -> int:
    """Bytes free on the disk of `folder`, which need not exist yet.

    Raises `ShardError` if there can be no such folder.
    """
    try:
        return shutil.disk_usage(nearest_there(folder)).free
    except OSError as error:
        raise ShardError(f"{folder}: {error.strerror}") from None


@functools.lru_cache(maxsize=4)
def _canary_here(prior: PriorConfig) -> str:
    return canary_digest(prior)


@functools.lru_cache(maxsize=4)
def _tasks_here(prior: PriorConfig) -> str:
    return tasks_digest(prior)
