"""Parts on disk: a part's entry is published last, and its hashes are checked on opening."""

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from puicl_config import ShardsConfig, canonical_json
from shard_io.checked import CheckedFiles
from shard_io.errors import ShardError, repairing, told_as_shard_error
from shard_io.files import sha256_file
from shard_io.layout import PARTS, SUFFIXES, PartId, PlanId
from shard_io.microbatch import Microbatch
from shard_io.store import Store, store_of
from shard_io.webdataset_format import WebdatasetPart, write_webdataset
from shard_io.zarr_format import ZarrPart, write_zarr

_WRITERS = {"zarr": write_zarr, "webdataset": write_webdataset}
Part = ZarrPart | WebdatasetPart
_READERS: dict[str, type[Part]] = {"zarr": ZarrPart, "webdataset": WebdatasetPart}


@dataclass(frozen=True)
class PartEntry:
    """A published part: what it holds, and the hashes of its files.

    `content_digest` covers the stored arrays and tags before compression, so it is the same in
    every format. `files` lists path, bytes and SHA-256 of each file. `plan` is None in older
    entries, which did not record it: their plan is unknown.
    """

    stage: int
    part: int
    n_microbatches: int
    n_tasks: int
    n_rows: int
    n_cells: int
    content_digest: str
    files: tuple[dict[str, Any], ...]
    plan: PlanId | None = None

    @property
    def id(self) -> PartId:
        """The part's address."""
        return PartId(self.stage, self.part)

    @property
    def n_bytes(self) -> int:
        """Bytes of all files."""
        return sum(file["bytes"] for file in self.files)

    def to_bytes(self) -> bytes:
        """Content of the entry's file."""
        fields = asdict(self)
        if self.plan is None:  # an older entry keeps its bytes
            del fields["plan"]
        return (canonical_json(fields) + "\n").encode()


def content_digest(microbatches: Sequence[Microbatch]) -> str:
    """Hex SHA-256 over the digests of a part's microbatches, in order."""
    return hashlib.sha256(b"".join(batch.digest() for batch in microbatches)).hexdigest()


def publish_part(
    folder: Path | Store,
    part: PartId,
    microbatches: Sequence[Microbatch],
    storage: ShardsConfig,
    plan: PlanId | None,
) -> PartEntry:
    """Write a part and, last, its entry; until the entry is written, the part does not exist.

    `plan` is the plan of the microbatches, or None if it is unknown. Returns the entry.
    """
    store = store_of(folder)
    with store.staging() as staging:
        data = staging / part.data_path(storage.format)
        data.parent.mkdir(parents=True)
        _WRITERS[storage.format](data, microbatches, storage)
        hashes = {
            path.relative_to(staging).as_posix(): {
                "bytes": path.stat().st_size,
                "sha256": sha256_file(path),
            }
            for path in sorted((staging / PARTS).rglob("*"))
            if path.is_file()
        }
        store.publish(staging / PARTS, PARTS)
    files = tuple({"path": path, **facts} for path, facts in hashes.items())
    entry = describe_part(part, microbatches, files, plan)
    publish_entry(folder, entry)
    return entry


def describe_part(
    part: PartId,
    microbatches: Sequence[Microbatch],
    files: tuple[dict[str, Any], ...],
    plan: PlanId | None,
) -> PartEntry:
    """The entry of a part that holds these microbatches of `plan` in these files."""
    return PartEntry(
        stage=part.stage,
        part=part.number,
        n_microbatches=len(microbatches),
        n_tasks=sum(batch.x.shape[0] for batch in microbatches),
        n_rows=sum(batch.x.shape[0] * batch.x.shape[1] for batch in microbatches),
        n_cells=sum(batch.x.size for batch in microbatches),
        content_digest=content_digest(microbatches),
        files=files,
        plan=plan,
    )


def publish_entry(folder: Path | Store, entry: PartEntry) -> None:
    """Write a part's entry, which makes the part exist; its files must already be complete."""
    store_of(folder).replace(entry.id.entry_path, entry.to_bytes())


def read_entry(folder: Path | Store, part: PartId) -> PartEntry | None:
    """The part's entry, or None if the part is not published.

    Raises `ShardError` if the entry is damaged, cannot be read or describes another part. This does
    not check whether the part fits the folder's manifest; `own_entry` does.
    """
    with told_as_shard_error(folder):
        try:
            raw = store_of(folder).read(part.entry_path)
        except FileNotFoundError:
            return None
    try:
        fields = json.loads(raw)
        if "plan" in fields:
            fields["plan"] = _plan_of(fields["plan"])
        entry = PartEntry(**{**fields, "files": tuple(fields["files"])})
        if entry.to_bytes() != raw or entry.id != part:
            raise ValueError("it is not the entry of this part")
        _check_file_records(entry)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ShardError(
            f"{folder / part.entry_path} is damaged: {error}; {repairing(folder)} makes "
            f"{part.name} again"
        ) from None
    return entry


def entries_of(folder: Path | Store) -> list[PartEntry]:
    """All undamaged entries in the folder, regardless of its manifest."""
    entries = []
    for path in store_of(folder).listing() or ():
        part = PartId.of_entry(path)
        with contextlib.suppress(ShardError):
            entry = read_entry(folder, part) if part else None
            entries += [entry] if entry else []
    return entries


def open_part(files: Path | CheckedFiles, part: PartId, shard_format: str) -> Part:
    """Open a part's data; files given as a plain folder are not checked against hashes.

    Raises `ShardError` if they cannot be read as a part.
    """
    checked = CheckedFiles(files) if isinstance(files, Path) else files
    return _READERS[shard_format](checked.root / part.data_path(shard_format), checked)


def _plan_of(raw: dict[str, Any]) -> PlanId:
    """The plan from an entry's JSON values; raises `ValueError` or `TypeError` if it is none."""
    plan = PlanId(**raw)
    if not isinstance(plan.digest, str) or not isinstance(plan.split, str):
        raise ValueError("its plan is not named by a digest and a split")
    return plan


def _check_file_records(entry: PartEntry) -> None:
    """Raise `ValueError` if an entry does not describe its files, or one lies outside the part."""
    homes = {entry.id.data_path(shard_format) for shard_format in SUFFIXES}
    if not entry.files:
        raise ValueError("it lists no files")
    for file in entry.files:
        if set(file) != {"path", "bytes", "sha256"} or type(file["bytes"]) is not int:
            raise ValueError("a file is not described by path, bytes and sha256")
        steps = str(file["path"]).split("/")
        if "/".join(steps[:2]) not in homes or not {"", ".", ".."}.isdisjoint(steps):
            raise ValueError(f"it lists {file['path']!r}, which is not a file of this part")
