"""Reading a folder as if it had been sliced, without making the slice."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shard_io.errors import ShardError
from shard_io.layout import PartId
from shard_io.parts import Part, PartEntry
from shard_io.reader import ShardReader
from shard_io.slice_index import SliceIndex
from shard_io.store import Store
from shard_io.where import Tags, parse_where


class FilteredReader(ShardReader):
    """A reader that answers every address with a microbatch that satisfies `where`.

    It returns what a reader of the slice by `slice_shards` would return. A stage's survivors are
    determined from all its parts on first access.
    """

    def __init__(self, folder: Path | Store, where: str):
        """Raise `InputError` for a bad expression, `ShardError` if there are no shards."""
        self._test = parse_where(where)
        self._where = where
        super().__init__(folder)
        self._source = ShardReader(folder)
        self._counting = threading.Lock()
        self._index = SliceIndex(joined(self.manifest.slice, where), {})
        self.manifest = replace(self.manifest, slice=self._index)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: kept for name, kept in state.items() if name not in ("_counting", "_test")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._counting, self._test = threading.Lock(), parse_where(self._where)

    def survivors(self, stage: int) -> tuple[int, ...]:
        """See `ShardReader`; raises `ShardError` if the stage has no survivors or lacks parts."""
        with self._counting:
            if stage not in self._index.survivors:
                numbers = surviving_numbers(self._source, stage, self._test, self._where)
                survivors = {**self._index.survivors, stage: numbers}
                self._index = replace(self._index, survivors=survivors)
                self.manifest = replace(self.manifest, slice=self._index)
            return self._index.survivors[stage]

    def missing_parts(self, stages: Iterable[int]) -> list[PartId]:
        """All unpublished parts of these stages, since survivors are counted in whole stages."""
        return self._source.missing_parts(stages)

    def awaited_parts(self, address: tuple[int, int, int]) -> list[PartId]:
        """See `ShardReader`; all of the stage's missing parts until its survivors are counted."""
        stage = address[0]
        return [] if stage in self._index.survivors else self.missing_parts([stage])

    def part(self, part_id: PartId) -> Part:
        """See `ShardReader`; the part is opened and checked once for both tags and arrays."""
        return self._source.part(part_id)

    def entry(self, part_id: PartId) -> PartEntry:
        """See `ShardReader`."""
        return self._source.entry(part_id)


def surviving_numbers(
    reader: ShardReader, stage: int, test: Callable[[Tags], bool], where: str
) -> tuple[int, ...]:
    """Numbers of the stage's microbatches that satisfy `test`, ascending.

    Raises `ShardError` if the stage lacks parts or no microbatch is left; `where` is the text of
    `test` for this message.
    """
    missing = reader.missing_parts([stage])
    if missing:
        raise ShardError(
            f"{reader.folder} lacks {missing[0].name}; survivors are counted in whole stages, "
            "so make the missing parts first"
        )
    numbers = tuple(
        reader.layout.span(part)[position]
        for part in reader.parts_of_stage(stage)
        for position, tags in zip(reader.positions(part), reader.tags(part), strict=True)
        if test(tags)
    )
    if not numbers:
        raise ShardError(
            f"no microbatch of stage {stage} is left where {where}; every stage must keep one"
        )
    return numbers


def joined(former: SliceIndex | None, where: str) -> str:
    """The condition of a slice by `where` of a slice with index `former`, or of the whole plan."""
    return f"({former.where}) and ({where})" if former else where
