"""The shard format: manifest, parts, reader, verification; zarr and webdataset alike."""

from shard_io.errors import ShardError
from shard_io.files import sweep_staging
from shard_io.layout import Layout, PartId
from shard_io.manifest import Manifest, claim_folder, describe_differences, merge_entries
from shard_io.microbatch import Microbatch
from shard_io.parts import PartEntry, publish_part, read_entry
from shard_io.reader import ShardReader, open_shards
from shard_io.verify import stray_files, verify_part

__all__ = [
    "Layout",
    "Manifest",
    "Microbatch",
    "PartEntry",
    "PartId",
    "ShardError",
    "ShardReader",
    "claim_folder",
    "describe_differences",
    "merge_entries",
    "open_shards",
    "publish_part",
    "read_entry",
    "stray_files",
    "sweep_staging",
    "verify_part",
]
