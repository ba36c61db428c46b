"""The shard format: manifest, parts, reader and verification, for both zarr and webdataset."""

from shard_io.commands import as_ranges, command_for
from shard_io.errors import (
    ManifestLost,
    NoShards,
    ShardError,
    repairing,
    told_as_shard_error,
)
from shard_io.files import sweep_staging
from shard_io.filtered import FilteredReader
from shard_io.layout import MANIFEST, PARTS, Layout, PartId, PlanId
from shard_io.manifest import (
    TASKS,
    Manifest,
    check_claim,
    check_same_bits,
    claim_folder,
    describe_differences,
    read_manifest,
    recorded_config,
)
from shard_io.merge import refresh_manifest
from shard_io.microbatch import Microbatch
from shard_io.parts import PartEntry, content_digest, entries_of, publish_part, read_entry
from shard_io.reader import ShardReader, open_shards
from shard_io.remote import cache_folder
from shard_io.slice import slice_shards
from shard_io.slice_index import SliceIndex
from shard_io.store import Store, folder_of, local_folder, store_of
from shard_io.verify import (
    BELONGS_NOWHERE,
    absent_parts,
    bad_parts,
    problems_of,
    stray_files,
    verify_part,
)

__all__ = [
    "BELONGS_NOWHERE",
    "MANIFEST",
    "PARTS",
    "TASKS",
    "FilteredReader",
    "Layout",
    "Manifest",
    "ManifestLost",
    "Microbatch",
    "NoShards",
    "PartEntry",
    "PartId",
    "PlanId",
    "ShardError",
    "ShardReader",
    "SliceIndex",
    "Store",
    "absent_parts",
    "as_ranges",
    "bad_parts",
    "cache_folder",
    "check_claim",
    "check_same_bits",
    "claim_folder",
    "command_for",
    "content_digest",
    "describe_differences",
    "entries_of",
    "folder_of",
    "local_folder",
    "open_shards",
    "problems_of",
    "publish_part",
    "read_entry",
    "read_manifest",
    "recorded_config",
    "refresh_manifest",
    "repairing",
    "slice_shards",
    "store_of",
    "stray_files",
    "sweep_staging",
    "told_as_shard_error",
    "verify_part",
]
