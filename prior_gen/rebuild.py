"""Reconstruction of a lost manifest from the parts' own entries."""

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
    """Write a new manifest for a folder whose own is missing or damaged; return it without entries.

    All readable entries must name the same plan and split. `config` must be of that plan and divide
    it into these parts; if it is None, the config that the damaged manifest still holds is used.
    The smallest part is generated again from its seeds. Only if it comes out the same may the
    canary and software of this machine be recorded for all parts. Damaged entries are left to
    `repair`.

    Raises `ShardError`, and writes nothing, if any of these conditions fails.
    """
    entries = entries_of(folder)
    plan = _common_plan(folder, entries)
    settings = config or recorded_config(folder)
    if settings is None:
        raise ShardError(
            f"{folder / MANIFEST} no longer says its plan: give the config that {folder} was made "
            "with (--config, and the same --set)"
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
    """The plan and split that all entries name; raises `ShardError` unless there is exactly one."""
    examples: dict[PlanId, str] = {}
    if not entries:
        raise ShardError(f"{folder} holds no shards: there is neither a manifest nor any entry")
    for entry in entries:
        if entry.plan is None:
            raise ShardError(
                f"the entry of {entry.id.name} in {folder} is of a version that did not record "
                "plans, so its plan is unknown: restore a copy of the manifest, or make the parts "
                "again in an empty folder, with the same digests"
            )
        examples[entry.plan] = entry.id.name
    if len(examples) > 1:
        named = ", ".join(f"{name} of {plan}" for plan, name in examples.items())
        raise ShardError(
            f"{folder} holds parts of several plans ({named}): move the entries of all but one away"
        )
    return next(iter(examples))


def _in_format_of(entries: Sequence[PartEntry], settings: Config) -> Config:
    """The settings with `shards.format` replaced by the format that the parts are stored in."""
    is_tar = entries[0].files[0]["path"].endswith(".tar")
    storage = {"format": "webdataset" if is_tar else "zarr"}
    return settings.model_copy(update={"shards": settings.shards.model_copy(update=storage)})


def _check_cut(folder: Path | Store, manifest: Manifest, entries: Sequence[PartEntry]) -> None:
    """Raise `ShardError` naming a part that does not exist in the manifest's plan and layout."""
    layout = manifest.layout
    for entry in entries:
        fits = entry.id in layout.parts_of_stage(entry.stage)
        if not fits or len(layout.span(entry.id)) != entry.n_microbatches:
            raise ShardError(
                f"{entry.id.name} in {folder}, of {entry.n_microbatches} microbatches, does not "
                f"exist with shards.parts_per_stage={layout.parts_per_stage}: give the number that "
                "the parts were made with (--config, --set shards.parts_per_stage=...)"
            )


def _check_seeds(
    folder: Path | Store, manifest: Manifest, entries: Sequence[PartEntry], is_given: bool
) -> None:
    """Raise `ShardError` unless the smallest part equals what its seeds give under the manifest.

    If the settings were not given but read from a damaged manifest, the bytes of the part's files
    must be the same, too, since the damage may have changed how parts are stored.
    """
    there = min(entries, key=lambda entry: (entry.n_cells, entry.id))
    (here,) = run_all(_made_apart, [(manifest, there.id)], jobs=1)
    if here.content_digest != there.content_digest:
        raise ShardError(
            f"{there.id.name} in {folder} is not what its seeds give here: another machine or "
            "software made it, shards.x_dtype was different, or it was altered"
        )
    if not is_given and here != there:
        raise ShardError(
            f"{there.id.name} in {folder} is not stored as {folder / MANIFEST} says: give the "
            "config that it was made with (--config)"
        )


def _made_apart(manifest: Manifest, part: PartId) -> PartEntry:
    """Generate the part in a temporary folder and return its entry."""
    with tempfile.TemporaryDirectory() as apart:
        return write_part(manifest, Path(apart), part)
