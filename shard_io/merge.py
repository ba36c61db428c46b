"""Merging of all entries into the manifest, for readers that cannot list a folder."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shard_io.layout import MANIFEST, PartId
from shard_io.parts import PartEntry
from shard_io.reader import ShardReader
from shard_io.store import Store, store_of


def refresh_manifest(folder: Path | Store, made: Iterable[PartId] = ()) -> None:
    """Merge the entries of all published parts into the folder's manifest.

    Several writers may do so at once: each looks again after writing, so the last one leaves
    nothing out. If a record in the manifest and an entry have different content digests
    (`is_disputed`), the record is kept: `verify` reports the difference, and `repair` uses the
    seeds to decide. For parts that the caller has just `made`, the entry replaces the record.

    Raises `ShardError`, and writes nothing, if an entry is damaged or of another plan.
    """
    store, made = store_of(folder), frozenset(made)
    while True:
        reader = ShardReader(folder)
        merged = merged_entries(folder)
        entries = {
            entry.id.name: merged[entry.id.name]
            if entry.id not in made and is_disputed(merged.get(entry.id.name), entry)
            else json.loads(entry.to_bytes())
            for entry in reader.entries(reader.published_parts())
        }
        content = reader.manifest.to_bytes(entries)
        if store.read(MANIFEST) == content:
            return
        store.replace(MANIFEST, content)


def merged_entries(folder: Path | Store) -> dict[str, Any]:
    """The manifest's records of the parts, by name; may be any JSON values if it was altered."""
    return json.loads(store_of(folder).read(MANIFEST))["parts"]


def is_disputed(record: Any, entry: PartEntry) -> bool:
    """Whether the manifest's `record` of a part and its `entry` have different content digests.

    Different files with the same content do not count: a part may have been compressed again.
    """
    known = isinstance(record, dict) and "content_digest" in record
    return known and record["content_digest"] != entry.content_digest
