"""Re-reading and re-hashing everything a folder holds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shard_io.errors import ShardError
from shard_io.files import check_files
from shard_io.layout import BYSTANDERS, MANIFEST, STAGING, PartId
from shard_io.manifest import read_manifest
from shard_io.parts import content_digest, describe_part, open_part, read_entry
from shard_io.reader import ShardReader


def problems_of(folder: Path) -> Iterator[str]:
    """Everything that is wrong with a folder, a sentence each.

    Every byte of the folder is accounted for, but for a README.md, a .gitignore and what lies in
    .staging. Raises `ShardError` where the manifest itself cannot be read.
    """
    reader = ShardReader(folder)
    for part in reader.published_parts():
        problem = verify_part(folder, part)
        if problem:
            yield problem
    for part in absent_parts(folder):
        yield f"{part.name} is missing"
    yield from stray_files(folder)


def verify_part(folder: Path, part: PartId) -> str | None:
    """What is wrong with a published part, or None: entry, file hashes, addresses and content."""
    manifest = read_manifest(folder)
    try:
        entry = read_entry(folder, part)
        if entry is None:
            return f"{part.name} is not published"
        check_files(folder, entry.files)
        opened = open_part(folder, part, manifest.storage.format)
        microbatches = [opened[position] for position in range(len(opened))]
    except ShardError as error:
        return str(error)
    addresses = [manifest.layout.address(part.stage, n) for n in manifest.layout.span(part)]
    if [batch.address for batch in microbatches] != addresses:
        return f"{part.name} holds other microbatches than its place in the plan"
    if content_digest(microbatches) != entry.content_digest:
        return f"{part.name} does not match its content digest"
    if describe_part(part, microbatches, entry.files) != entry:
        return f"{folder / part.entry_path} counts other microbatches, tasks, rows or cells"
    return None


def absent_parts(folder: Path) -> list[PartId]:
    """Parts that should be there and are not: of stages begun, or named by the manifest."""
    reader = ShardReader(folder)
    begun = {part.stage for part in reader.published_parts()}
    merged = _merged(folder)
    stages = range(1, reader.manifest.config.prior.total_stages + 1)
    return [
        part for part in reader.missing_parts(stages) if part.stage in begun or part.name in merged
    ]


def stray_files(folder: Path) -> Iterator[str]:
    """Files that belong to no published part, and what the manifest says of parts wrongly."""
    reader = ShardReader(folder)
    known = {MANIFEST, *BYSTANDERS}
    published = {}
    for part in reader.published_parts():
        known.add(part.entry_path)
        published[part.name] = None
        try:
            entry = reader.entry(part)
        except ShardError:
            continue  # verify_part reports it
        published[part.name] = json.loads(entry.to_bytes())
        known.update(file["path"] for file in entry.files)
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        in_staging = relative == STAGING or relative.startswith(f"{STAGING}/")
        # A link to nowhere is no file, and still does not belong here.
        if (path.is_symlink() or not path.is_dir()) and relative not in known and not in_staging:
            yield f"{path} belongs to no published part"
    yield from _manifest_problems(folder, published)


def _manifest_problems(folder: Path, published: dict[str, Any]) -> Iterator[str]:
    path = folder / MANIFEST
    merged = _merged(folder)
    for name in sorted(merged):
        if merged[name] != published.get(name):
            yield f"{path} and the entry of {name} differ"
    stale = sorted(published.keys() - merged.keys())
    if stale:
        more = f" and {len(stale) - 1} more" if len(stale) > 1 else ""
        yield (
            f"{path} lacks the entry of {stale[0]}{more}: a writer was killed or is still at "
            f"work, or it was altered; `prior-gen repair {folder}` merges all entries"
        )
    text = path.read_bytes()
    if (json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n").encode() != text:
        yield f"{path} is not written as it was: its spaces or the form of a value were altered"


def _merged(folder: Path) -> dict[str, Any]:
    return json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["parts"]
