"""Slicing: a subset of a folder by tags, which links the data instead of copying it."""

import contextlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

from puicl_config import canonical_json
from shard_io.errors import ShardError, told_as_shard_error
from shard_io.files import publish_files, replace_whole, staging_folder, sweep_staging
from shard_io.filtered import joined, surviving_numbers
from shard_io.layout import MANIFEST, PARTS
from shard_io.manifest import Manifest, check_same_bits, claim_folder, read_manifest
from shard_io.merge import refresh_manifest
from shard_io.parts import PartEntry, publish_entry
from shard_io.reader import ShardReader
from shard_io.slice_index import SliceIndex
from shard_io.store import Store, store_of
from shard_io.where import parse_where


def slice_shards(source: Path | Store, where: str, out: Path) -> Manifest:
    """Make `out` the slice of `source` by `where`, and return its manifest.

    The slice covers the stages that `source` has begun, which must be complete. Parts that hold
    survivors are hard-linked, or copied if the file system cannot link; parts behind a URL are
    downloaded into the cache and linked from there. Hence `out` does not depend on `source`
    afterwards. An interrupted call can be repeated to resume, and a later call adds stages that
    `source` has got in the meantime.

    Raises `InputError` for a bad expression. Raises `ShardError` if `source` holds no parts, if a
    stage has no survivors or lacks parts, or if `out` is `source`, holds anything else or cannot be
    written to.
    """
    reader = ShardReader(source)
    if isinstance(source, Path) and out.resolve() == source.resolve():
        raise ShardError(f"{source} cannot be sliced into itself; give another folder")
    index = _index(reader, where)
    manifest = replace(reader.manifest, slice=index)
    with told_as_shard_error(out):
        with contextlib.suppress(ShardError):
            if _grows(read_manifest(out), manifest):
                replace_whole(out, MANIFEST, manifest.to_bytes({}))
        check_same_bits(out, claim_folder(out, manifest), source, manifest)
        sweep_staging(out)
        slice_reader = ShardReader(out)
        for part in slice_reader.missing_parts(index.survivors):
            entry = reader.entry(part)
            _link_part(store_of(source).bring(entry.files).root, out, entry)
        refresh_manifest(out)
    return manifest


def _index(reader: ShardReader, where: str) -> SliceIndex:
    test = parse_where(where)
    survivors = {}
    for stage in sorted({part.stage for part in reader.published_parts()}):
        survivors[stage] = surviving_numbers(reader, stage, test, where)
    if not survivors:
        raise ShardError(f"{reader.folder} holds no parts yet")
    return SliceIndex(joined(reader.manifest.slice, where), survivors)


def _grows(old: Manifest, new: Manifest) -> bool:
    """Whether `new` is the slice `old` with the same or more stages."""
    if old.slice is None or new.slice is None or old.slice.where != new.slice.where:
        return False
    if not old.slice.survivors.items() <= new.slice.survivors.items():
        return False
    return canonical_json(replace(old, slice=new.slice).header()) == canonical_json(new.header())


def _link_part(source: Path, folder: Path, entry: PartEntry) -> None:
    """Publish a part in `folder` by linking its files from `source`, or copying if need be."""
    with staging_folder(folder) as staging:
        for file in entry.files:
            target = staging / file["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(source / file["path"], target)
            except OSError:  # another file system, or one without links
                shutil.copyfile(source / file["path"], target)
        publish_files(staging / PARTS, folder / PARTS)
    publish_entry(folder, entry)
