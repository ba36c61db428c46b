"""Re-reading and re-hashing everything a folder holds."""

import json
from collections.abc import Iterator
from pathlib import Path

from shard_io.errors import ShardError
from shard_io.layout import BYSTANDERS, MANIFEST, STAGING, PartId
from shard_io.manifest import read_manifest
from shard_io.parts import check_files, content_digest, open_part, read_entry
from shard_io.reader import ShardReader


def verify_part(folder: Path, part: PartId) -> str | None:
    """What is wrong with a published part, or None: entry, file hashes, addresses and content."""
    manifest = read_manifest(folder)
    try:
        entry = read_entry(folder, part)
        if entry is None:
            return f"{part.name} is not published"
        check_files(folder, entry)
        opened = open_part(folder, part, manifest.storage.format)
        microbatches = [opened[position] for position in range(len(opened))]
    except ShardError as error:
        return str(error)
    addresses = [manifest.layout.address(part.stage, n) for n in manifest.layout.span(part)]
    if [batch.address for batch in microbatches] != addresses:
        return f"{part.name} holds other microbatches than its place in the plan"
    if content_digest(microbatches) != entry.content_digest:
        return f"{part.name} does not match its content digest"
    return None


def stray_files(folder: Path) -> Iterator[str]:
    """Files that belong to no published part, and what the manifest says of parts wrongly."""
    reader = ShardReader(folder)
    known = {MANIFEST, *BYSTANDERS}
    published = {}
    for part in reader.published_parts():
        known.add(part.entry_path)
        try:
            entry = reader.entry(part)
        except ShardError:
            continue  # verify_part reports it
        published[part.name] = json.loads(entry.to_bytes())
        known.update(file["path"] for file in entry.files)
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder).as_posix()
        if path.is_file() and relative not in known and not relative.startswith(f"{STAGING}/"):
            yield f"{path} belongs to no published part"
    merged = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["parts"]
    for name in sorted(merged):
        if merged[name] != published.get(name):
            yield f"{folder / MANIFEST} and the entry of {name} differ"
