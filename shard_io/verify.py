"""Verification: reading and hashing everything in a folder again, here or behind a URL."""

import json
from collections.abc import Callable, Iterator
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

# End of messages on files that no command removes, since only their owner knows what they are.
BELONGS_NOWHERE = "belongs to no published part"


def problems_of(
    folder: Path | Store, checked: Callable[[], object] = lambda: None
) -> Iterator[str]:
    """Everything that is wrong with a folder, one sentence per problem.

    `checked` is called after each published part.

    Every byte of the folder is covered except a README.md, a .gitignore, the content of .staging
    and subfolders with their own manifest. If the folder cannot be listed (a web server), files
    that no entry names go unnoticed. Raises `ShardError` if the manifest itself cannot be read.
    """
    reader = ShardReader(folder)
    for part in reader.published_parts():
        problem = verify_part(folder, part, reader.manifest)
        checked()
        if problem:
            yield problem
    for part in absent_parts(folder):
        yield f"{part.name} is missing"
    yield from stray_files(folder)


def verify_part(folder: Path | Store, part: PartId, manifest: Manifest | None = None) -> str | None:
    """What is wrong with a published part (entry, plan, storage, hashes, content), or None.

    Reads the folder or URL itself, never a cache. `manifest` is the folder's, if already read.
    Raises `ShardError` if the manifest has to be read and cannot be.
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
        return f"{part.name} does not hold the microbatches of its place in the plan"
    if content_digest(microbatches) != entry.content_digest:
        return f"{part.name} does not match its content digest"
    if describe_part(part, microbatches, entry.files, entry.plan) != entry:
        return f"{folder / part.entry_path} has wrong counts of microbatches, tasks, rows or cells"
    return None


def bad_parts(folder: Path | Store, checked: Callable[[], object] = lambda: None) -> list[PartId]:
    """Published parts that must be made again, in order; `checked` is called after each part.

    These are the parts that `verify_part` complains about, and those whose content digest in the
    manifest differs from that in the entry: only the seeds can tell which of the two is right.
    """
    reader = ShardReader(folder)
    merged = merged_entries(folder)
    bad = []
    for part in reader.published_parts():
        problem = verify_part(folder, part, reader.manifest)
        checked()
        if problem or is_disputed(merged.get(part.name), reader.entry(part)):
            bad.append(part)
    return bad


def absent_parts(folder: Path | Store) -> list[PartId]:
    """Missing parts of stages that were begun, and missing parts that the manifest names."""
    reader = ShardReader(folder)
    begun = {part.stage for part in reader.published_parts()}
    merged = merged_entries(folder)
    stages = range(1, reader.manifest.config.prior.total_stages + 1)
    return [
        part for part in reader.missing_parts(stages) if part.stage in begun or part.name in merged
    ]


def stray_files(folder: Path | Store) -> Iterator[str]:
    """Problems with files that belong to no published part, and with the manifest's records.

    Subfolders with their own manifest hold other shards and are ignored.
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
        yield f"{path} is not formatted as it was: its spaces or the form of a value were altered"
