"""Re-reading and re-hashing everything a folder holds, here or behind a URL."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shard_io.errors import ShardError, repairing, told_as_shard_error
from shard_io.layout import BYSTANDERS, MANIFEST, STAGING, PartId, other_homes
from shard_io.manifest import Manifest, read_manifest
from shard_io.merge import is_disputed, merged_entries
from shard_io.parts import content_digest, describe_part
from shard_io.reader import ShardReader
from shard_io.store import Store, store_of
from shard_io.strangers import open_own, own_entry

# Ends the sentences on what no command removes: nobody but its owner knows what it is.
BELONGS_NOWHERE = "belongs to no published part"


def problems_of(folder: Path | Store) -> Iterator[str]:
    """Everything that is wrong with a folder, a sentence each.

    Every byte of the folder is accounted for, but for a README.md, a .gitignore and what lies in
    .staging; where the folder cannot be listed (a web server), files that no entry names stay
    unseen. Raises `ShardError` where the manifest itself cannot be read.
    """
    reader = ShardReader(folder)
    for part in reader.published_parts():
        problem = verify_part(folder, part, reader.manifest)
        if problem:
            yield problem
    for part in absent_parts(folder):
        yield f"{part.name} is missing"
    yield from stray_files(folder)


def verify_part(folder: Path | Store, part: PartId, manifest: Manifest | None = None) -> str | None:
    """What is wrong with a published part, or None: entry, plan, storage, hashes and content.

    Reads the place itself, never a cache. `manifest` is the folder's, where it is read already.
    """
    manifest = manifest or read_manifest(folder)
    try:
        entry = own_entry(folder, part, manifest)
        if entry is None:
            return f"{part.name} is not published"
        with told_as_shard_error(folder), store_of(folder).fresh(entry.files) as files:
            opened = open_own(folder, part, manifest, files)
            microbatches = [opened[position] for position in range(len(opened))]
    except ShardError as error:
        return str(error)
    if [batch.address for batch in microbatches] != manifest.layout.addresses(part):
        return f"{part.name} holds other microbatches than its place in the plan"
    if content_digest(microbatches) != entry.content_digest:
        return f"{part.name} does not match its content digest"
    if describe_part(part, microbatches, entry.files, entry.plan) != entry:
        return f"{folder / part.entry_path} counts other microbatches, tasks, rows or cells"
    return None


def bad_parts(folder: Path | Store) -> list[PartId]:
    """Published parts that are to be made again, in order.

    Those that `verify_part` finds something wrong with, and those whose content is another one by
    the manifest: which of the two is right, only the seeds can tell.
    """
    reader = ShardReader(folder)
    merged = merged_entries(folder)
    return [
        part
        for part in reader.published_parts()
        if verify_part(folder, part, reader.manifest)
        or is_disputed(merged.get(part.name), reader.entry(part))
    ]


def absent_parts(folder: Path | Store) -> list[PartId]:
    """Parts that should be there and are not: of stages begun, or named by the manifest."""
    reader = ShardReader(folder)
    begun = {part.stage for part in reader.published_parts()}
    merged = merged_entries(folder)
    stages = range(1, reader.manifest.config.prior.total_stages + 1)
    return [
        part for part in reader.missing_parts(stages) if part.stage in begun or part.name in merged
    ]


def stray_files(folder: Path | Store) -> Iterator[str]:
    """Files that belong to no published part, and what the manifest says of parts wrongly.

    Folders in it that have a manifest of their own are other shards, and not looked at.
    """
    reader = ShardReader(folder)
    known = {MANIFEST, *BYSTANDERS}
    published: dict[str, Any] = {}
    for part in reader.published_parts():
        known.add(part.entry_path)
        published[part.name] = None
        try:
            entry = reader.entry(part)
        except ShardError:
            continue  # verify_part reports it
        published[part.name] = json.loads(entry.to_bytes())
        known.update(file["path"] for file in entry.files)
    listing = store_of(folder).listing() or ()
    elsewhere = {STAGING, *other_homes(listing)}
    for path in listing:
        if path not in known and path.split("/")[0] not in elsewhere:
            yield f"{folder / path} {BELONGS_NOWHERE}"
    yield from _manifest_problems(folder, published)


def _manifest_problems(folder: Path | Store, published: dict[str, Any]) -> Iterator[str]:
    path = folder / MANIFEST
    merged = merged_entries(folder)
    for name in sorted(merged):
        if merged[name] != published.get(name):
            yield f"{path} and the entry of {name} differ"
    stale = sorted(published.keys() - merged.keys())
    if stale:
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        yield (
            f"{path} lacks the entry of {stale[0]}{more}: a writer was killed or is still at "
            f"work, or it was altered; {repairing(folder)} merges all entries"
        )
    text = store_of(folder).read(MANIFEST)
    if (json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n").encode() != text:
        yield f"{path} is not written as it was: its spaces or the form of a value were altered"
