"""A manifest that was lost, made again from what the parts' own entries say."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from prior_gen.generator import manifest_here, write_part
from puicl_config import Config
from puicl_config.workers import run_all
from shard_io import (
    MANIFEST,
    Manifest,
    PartEntry,
    PartId,
    PlanId,
    ShardError,
    Store,
    entries_of,
    recorded_config,
    store_of,
)


def rebuild_manifest(folder: Path | Store, config: Config | None) -> Manifest:
    """Write the manifest of a folder whose own is missing or damaged; returns it, without entries.

    All entries that can be read must name one plan and split; `config` must be of that plan, and
    cut it into these parts. Left out, what the damaged manifest still says is taken for it. The
    smallest part is made again from its seeds: only where it comes out the same does this machine
    speak for the others, with its canary and software. Damaged entries are left to `repair`.

    Raises `ShardError` where any of this is not so; nothing is written then.
    """
    entries = entries_of(folder)
    plan = _common_plan(folder, entries)
    settings = config or recorded_config(folder)
    if settings is None:
        raise ShardError(
            f"{folder / MANIFEST} no longer says its plan: give the config that {folder} was made "
            "with (--config, and --set as then)"
        )
    manifest = manifest_here(_in_format_of(entries, settings), plan.split)
    if manifest.plan_id != plan:
        source = "the config" if config else f"what {folder / MANIFEST} still says"
        raise ShardError(
            f"{source} is of {manifest.plan_id}, and the parts of {folder} are of {plan}: give the "
            "config that they were made with, to the same version of the prior"
        )
    _check_cut(folder, manifest, entries)
    _check_seeds(folder, manifest, entries, is_given=config is not None)
    store_of(folder).replace(MANIFEST, manifest.to_bytes({}))
    return manifest


def _common_plan(folder: Path | Store, entries: Sequence[PartEntry]) -> PlanId:
    """The plan and split that all entries name; raises `ShardError` where that is not just one."""
    examples: dict[PlanId, str] = {}
    if not entries:
        raise ShardError(f"{folder} holds no shards: there is neither a manifest nor any entry")
    for entry in entries:
        if entry.plan is None:
            raise ShardError(
                f"the entry of {entry.id.name} in {folder} is older than their plans' names, so "
                "that nobody can tell of which plan it is: put a copy of the manifest back, or "
                "make the parts again in an empty folder, to the same digests"
            )
        examples[entry.plan] = entry.id.name
    if len(examples) > 1:
        named = ", ".join(f"{name} of {plan}" for plan, name in examples.items())
        raise ShardError(
            f"{folder} holds parts of several plans ({named}): move the entries of all but one away"
        )
    return next(iter(examples))


def _in_format_of(entries: Sequence[PartEntry], settings: Config) -> Config:
    """The settings with the format that the parts are stored in, whatever `shards.format` says."""
    is_tar = entries[0].files[0]["path"].endswith(".tar")
    storage = {"format": "webdataset" if is_tar else "zarr"}
    return settings.model_copy(update={"shards": settings.shards.model_copy(update=storage)})


def _check_cut(folder: Path | Store, manifest: Manifest, entries: Sequence[PartEntry]) -> None:
    """Raise `ShardError` naming a part that the manifest's plan and storage do not have."""
    layout, stages = manifest.layout, manifest.config.prior.total_stages
    for entry in entries:
        fits = 1 <= entry.stage <= stages and entry.id in layout.parts_of_stage(entry.stage)
        if not fits or len(layout.span(entry.id)) != entry.n_microbatches:
            raise ShardError(
                f"{entry.id.name} in {folder}, of {entry.n_microbatches} microbatches, is no part "
                f"where shards.parts_per_stage={layout.parts_per_stage}: give the number that the "
                "parts were made with (--config, --set shards.parts_per_stage=...)"
            )


def _check_seeds(
    folder: Path | Store, manifest: Manifest, entries: Sequence[PartEntry], is_given: bool
) -> None:
    """Raise `ShardError` unless the smallest part is what the manifest says that its seeds give.

    Settings that were not given must give its files' bytes, too: what they say of how parts are
    stored may be what was damaged.
    """
    there = min(entries, key=lambda entry: (entry.n_cells, entry.id))
    (here,) = run_all(_made_apart, [(manifest, there.id)], jobs=1)
    if here.content_digest != there.content_digest:
        raise ShardError(
            f"{there.id.name} in {folder} is not what its seeds give here: another machine or "
            "software made it, shards.x_dtype was another, or it was altered"
        )
    if not is_given and here != there:
        raise ShardError(
            f"{there.id.name} in {folder} is stored otherwise than {folder / MANIFEST} says: give "
            "the config that it was made with (--config)"
        )


def _made_apart(manifest: Manifest, part: PartId) -> PartEntry:
    """The entry that the part has when it is made here; what is made is gone afterwards."""
    with tempfile.TemporaryDirectory() as apart:
        return write_part(manifest, Path(apart), part)
