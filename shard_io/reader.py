"""Reading shards: `open_shards(path)[stage, step, index]`."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from shard_io.checked import CheckedFiles
from shard_io.errors import ShardError
from shard_io.files import check_sizes
from shard_io.layout import PartId
from shard_io.manifest import Manifest, read_manifest
from shard_io.microbatch import Microbatch
from shard_io.parts import Part, PartEntry
from shard_io.store import Store, folder_of, store_of
from shard_io.strangers import open_own, own_entry

_OPEN_PARTS = 64


def open_shards(path: str | Path | Store) -> "ShardReader":
    """Open a folder of shards, or an s3:// or http(s):// URL, for reading.

    Raises `ShardError` if it holds no shards, and `InputError` for an unsupported URL.
    """
    return ShardReader(folder_of(path) if isinstance(path, str) else path)


class ShardReader:
    """Random access to microbatches by address; thread-safe.

    A part's files are checked against the hashes in its entry when the part is first opened, and
    later reads are checked against what was hashed then: altered bytes are never returned. A
    pickled reader takes entries and checksums along, so copies in other processes must find the
    same files.
    """

    def __init__(self, folder: Path | Store):
        self.folder = folder
        self._store = store_of(folder)
        self.manifest: Manifest = read_manifest(folder)
        self.layout = self.manifest.layout
        self._lock = threading.Lock()
        self._open: OrderedDict[PartId, Part] = OrderedDict()
        self._entries: dict[PartId, PartEntry] = {}
        self._checked: dict[PartId, CheckedFiles] = {}  # of all parts opened so far

    # Addresses are triples; without this, Python would iterate by asking for 0, 1, 2, ...
    __iter__ = None

    def __getitem__(self, address: tuple[int, int, int]) -> Microbatch:
        """The microbatch at [stage, step, index].

        Raises `KeyError` if the plan has no such address, and `ShardError` if its part is not
        published or is damaged, or if a slice does not cover its stage.
        """
        part_id, position = self.part_of(address)
        microbatch = self.part(part_id)[position]
        self._check_place(part_id, position, microbatch.tags)
        return microbatch

    def __getstate__(self) -> dict[str, Any]:
        # Locks and open files cannot be pickled for another process.
        with self._lock:
            state = {**self.__dict__, "_entries": {**self._entries}, "_checked": {**self._checked}}
        return {name: kept for name, kept in state.items() if name not in ("_lock", "_open")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._open = threading.Lock(), OrderedDict()

    def part_of(self, address: tuple[int, int, int]) -> tuple[PartId, int]:
        """The part whose microbatch answers `address`, and the microbatch's position in it.

        In a slice, a survivor answers; its tags keep its own address. Raises `KeyError` if the plan
        has no such address, and `ShardError` if the slice does not cover its stage.
        """
        part, position = self.layout.locate(*address)
        survivors = self.survivors(part.stage)
        if survivors is None:
            return part, position
        number = self.layout.span(part)[position]
        survivor = survivors[number % len(survivors)]
        return self.layout.locate(*self.layout.address(part.stage, survivor))

    def survivors(self, stage: int) -> tuple[int, ...] | None:
        """Numbers of the stage's microbatches that answer its addresses; None if all do.

        Raises `ShardError` if the slice does not cover the stage.
        """
        index = self.manifest.slice
        if index is None:
            return None
        if stage not in index.survivors:
            raise ShardError(f"{self.folder} is a slice without stage {stage}")
        return index.survivors[stage]

    def awaited_parts(self, address: tuple[int, int, int]) -> list[PartId]:
        """Unpublished parts that are needed to read the address."""
        part_id, _ = self.part_of(address)
        return [] if part_id in self._entries else self._unpublished([part_id])

    @property
    def look_every(self) -> float:
        """Seconds to wait between two checks for newly published parts."""
        return self._store.look_every

    def parts_of_stage(self, stage: int) -> list[PartId]:
        """The parts that the stage's addresses are read from, in order.

        These are all parts of the stage or, in a slice, those that hold survivors.
        """
        index = self.manifest.slice
        if index is None or stage not in index.survivors:
            return self.layout.parts_of_stage(stage)
        addresses = (self.layout.address(stage, number) for number in index.survivors[stage])
        return sorted({self.layout.locate(*address)[0] for address in addresses})

    def positions(self, part_id: PartId) -> list[int]:
        """Positions in the part that some address reads: all or, in a slice, the survivors."""
        index, span = self.manifest.slice, self.layout.span(part_id)
        if index is None or part_id.stage not in index.survivors:
            return list(range(len(span)))
        survivors = set(index.survivors[part_id.stage])
        return [position for position, number in enumerate(span) if number in survivors]

    def entry(self, part_id: PartId) -> PartEntry:
        """The part's entry.

        Raises `ShardError` if it is not published, damaged, or does not fit the manifest.
        """
        entry = self._entries.get(part_id) or own_entry(self.folder, part_id, self.manifest)
        if entry is None:
            raise ShardError(f"{self.folder} lacks {part_id.name}")
        self._entries[part_id] = entry
        return entry

    def entries(self, parts: Sequence[PartId]) -> list[PartEntry]:
        """The entries of `parts`, in order; behind a URL, many are requested in parallel.

        Raises `ShardError` as `entry` does.
        """
        if isinstance(self.folder, Path):
            return [self.entry(part) for part in parts]
        with ThreadPoolExecutor(16) as pool:
            return list(pool.map(self.entry, parts))

    def tags(self, part_id: PartId) -> list[dict[str, Any]]:
        """Tags of the part's microbatches that some address reads, in order.

        Reads and hashes only what the format requires: the metadata of zarr, or the whole tar of
        webdataset. Raises `ShardError` if the part is not published or is damaged.
        """
        if self.manifest.storage.format == "zarr":
            files = self.entry(part_id).files
            checked = self._store.bring([f for f in files if f["path"].endswith("/zarr.json")])
        else:
            with self._lock:
                checked = self._files_of(part_id)
        part = open_own(self.folder, part_id, self.manifest, checked)
        positions = self.positions(part_id)
        found = [part.tags(position) for position in positions]
        for position, tags in zip(positions, found, strict=True):
            self._check_place(part_id, position, tags)
        return found

    def missing_parts(self, stages: Iterable[int]) -> list[PartId]:
        """Unpublished parts of these stages, in order."""
        return self._unpublished([part for stage in stages for part in self.parts_of_stage(stage)])

    def check_sizes(self, parts: Iterable[PartId]) -> None:
        """Raise `ShardError` naming the first file of `parts` that is missing or of another size.

        This is cheap, since contents are hashed only when a part is opened. Behind a URL, nothing
        is checked: entries are uploaded last there, and a request for every file would take
        minutes.
        """
        if isinstance(self.folder, Path):
            for part in parts:
                check_sizes(self.folder, self.entry(part).files)

    def published_parts(self) -> list[PartId]:
        """All published parts, in order."""
        stages = range(1, self.manifest.config.prior.total_stages + 1)
        missing = set(self.missing_parts(stages))
        return [
            part for stage in stages for part in self.parts_of_stage(stage) if part not in missing
        ]

    def part(self, part_id: PartId) -> Part:
        """The part, opened, with its files checked once; up to 64 parts are kept open.

        Raises `ShardError` if the part is not published or is damaged.
        """
        with self._lock:
            if part_id not in self._open:
                self._open[part_id] = open_own(
                    self.folder, part_id, self.manifest, self._files_of(part_id)
                )
                if len(self._open) > _OPEN_PARTS:
                    self._open.popitem(last=False)
            self._open.move_to_end(part_id)
            return self._open[part_id]

    def _files_of(self, part_id: PartId) -> CheckedFiles:
        """The part's files, hashed on first access; the caller holds `_lock`."""
        if part_id not in self._checked:
            self._checked[part_id] = self._store.bring(self.entry(part_id).files)
        return self._checked[part_id]

    def _check_place(self, part_id: PartId, position: int, tags: dict[str, Any]) -> None:
        """Raise `ShardError` unless the tags of the microbatch at `position` have its address."""
        stored = self.layout.address(part_id.stage, self.layout.span(part_id)[position])
        found = tags.get("stage"), tags.get("step"), tags.get("index")
        if found != stored:
            raise ShardError(
                f"{part_id.data_path(self.manifest.storage.format)} in {self.folder} holds "
                f"{list(found)} where {list(stored)} belongs"
            )

    def _unpublished(self, parts: list[PartId]) -> list[PartId]:
        published = self._store.present([part.entry_path for part in parts])
        return [part for part in parts if part.entry_path not in published]
