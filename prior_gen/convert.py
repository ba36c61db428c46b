"""Conversion of shards to another format: tasks are read and stored again, never recomputed."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from prior_gen.estimate import room
from prior_gen.generator import GenerationResult, check_space, free_space, write_parts
from puicl_config import Config
from puicl_config.workers import drop_if_told
from shard_io import (
    Manifest,
    PartEntry,
    PartId,
    ShardError,
    Store,
    check_claim,
    check_same_bits,
    claim_folder,
    content_digest,
    open_shards,
    publish_part,
    repairing,
    store_of,
    sweep_staging,
)


def convert_shards(
    source: Path | Store,
    out: Path | Store,
    shard_format: Literal["zarr", "webdataset"],
    jobs: int | None = None,
) -> GenerationResult:
    """Store every part of `source` that `out` lacks in `out`, in `shard_format`.

    `out` becomes, byte for byte, the folder that the generator would have written in that format,
    with two exceptions. Older entries of `source` that name no plan name none in `out` either. In
    zarr parts converted from webdataset, the tags that `prior.extensions` writes are sorted.
    Content digests do not change. A conversion that was interrupted resumes part by part.

    Raises `InputError` if `out` is a read-only URL. Raises `ShardError`, before anything is
    written, if `out` is `source`, holds anything else or has too little disk space, or if a machine
    that produces different bits began it; and later if a part of `source` is damaged.
    """
    store_of(out).check_writable()
    reader = open_shards(source)
    if _place(out) == _place(source):
        raise ShardError(f"{source} cannot be converted into itself; give another folder")
    theirs = reader.manifest
    storage = theirs.storage.model_copy(update={"format": shard_format})
    ours = replace(theirs, config=Config(prior=theirs.config.prior, shards=storage))
    published = reader.published_parts()
    begun = check_claim(out, ours) is not None
    if isinstance(out, Path):
        lacking = _lacking(out, published) if begun else published
        check_space(out, room(ours.config, lacking, ours.split, free_space(out)))
    manifest = claim_folder(out, ours)
    check_same_bits(out, manifest, source, theirs)
    if isinstance(out, Path):
        sweep_staging(out)
    parts = _lacking(out, published)
    make = functools.partial(convert_part, source)
    result = write_parts(manifest, out, parts, jobs, make=make)
    return replace(result, skipped=len(published) - len(parts))


def convert_part(
    source: Path | Store, manifest: Manifest, folder: Path | Store, part: PartId
) -> PartEntry:
    """Store one part of `source` in `folder` as `manifest` says: one worker's unit of work.

    Raises `ShardError` if the part is damaged, and `Dropped` if the run ends meanwhile.
    """
    reader = open_shards(source)
    stored = reader.part(part)
    microbatches = []
    for position in range(len(stored)):
        drop_if_told()
        microbatches.append(stored[position])
    if [batch.address for batch in microbatches] != reader.layout.addresses(part):
        raise ShardError(
            f"{part.name} in {source} does not hold the microbatches of its place in the plan; "
            f"{repairing(source)} makes it again"
        )
    entry = reader.entry(part)
    if content_digest(microbatches) != entry.content_digest:
        raise ShardError(
            f"{part.name} in {source} does not match its content digest; "
            f"{repairing(source)} makes it again"
        )
    # An older entry names no plan, and storing its tasks again does not prove which plan it had.
    return publish_part(folder, part, microbatches, manifest.storage, entry.plan)


def _lacking(out: Path | Store, published: Sequence[PartId]) -> list[PartId]:
    missing = set(open_shards(out).missing_parts({part.stage for part in published}))
    return [part for part in published if part in missing]


def _place(folder: Path | Store) -> str:
    return str(folder.resolve() if isinstance(folder, Path) else folder)
