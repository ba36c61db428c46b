"""The entries merged into the manifest, for readers that cannot list a folder."""

import json
from pathlib import Path
from typing import Any

from shard_io.layout import MANIFEST
from shard_io.reader import ShardReader
from shard_io.store import Store, store_of


def refresh_manifest(folder: Path | Store) -> None:
    """Merge the entries of all published parts into the folder's manifest.

    Several writers may do so at once: each looks again after it wrote, so whoever writes last
    leaves nothing out.
    """
    store = store_of(folder)
    while True:
        reader = ShardReader(folder)
        content = reader.manifest.to_bytes(published_entries(reader))
        if store.read(MANIFEST) == content:
            return
        store.replace(MANIFEST, content)


def published_entries(reader: ShardReader) -> dict[str, Any]:
    """Every published part's entry by its name, as plain data."""
    return {
        entry.id.name: json.loads(entry.to_bytes())
        for entry in reader.entries(reader.published_parts())
    }
