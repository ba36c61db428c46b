"""Progress measured by what is published, which works for every backend."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from puicl_config import ProgressReport, duration
from puicl_config.progress import looking
from shard_io import PartId, ShardError, Store, store_of


class StageProgress:
    """Progress of each stage, in words. Stages are processed in order, and may overlap."""

    def __init__(self, tasks: Mapping[PartId, int], now: float):
        self._tasks = tasks
        self._total: dict[int, int] = {}
        for part, count in tasks.items():
            self._total[part.stage] = self._total.get(part.stage, 0) + count
        self._stages = sorted(self._total)
        self._done = dict.fromkeys(self._stages, 0)
        self._begun = dict.fromkeys(self._stages[:1], now)
        self._last = now

    def advance(self, parts: list[PartId], now: float) -> str:
        """Count finished `parts`; describe the latest of their stages, with its rate and time left.

        A stage counts as begun once the stage before it is finished. If its first part is finished
        sooner, it counts as begun at the previous call of this method. `now` is in seconds.
        """
        for part in parts:
            self._done[part.stage] += self._tasks[part]
        for before, stage in zip([None, *self._stages], self._stages, strict=False):
            if self._done[stage]:
                self._begun.setdefault(stage, self._last)
            if before is not None and self._done[before] == self._total[before]:
                self._begun.setdefault(stage, now)
        self._last = now
        return self._say(max(part.stage for part in parts), now)

    def _say(self, stage: int, now: float) -> str:
        if len(self._stages) == 1:
            return f"stage {stage}"  # its progress is that of the whole
        done, total = self._done[stage], self._total[stage]
        elapsed = now - self._begun[stage]
        told = f"stage {stage}: {done}/{total}"
        if done == total or elapsed <= 0:
            return told
        rate = done / elapsed
        return f"{told}, {rate:.4g}/s, {duration((total - done) / rate)} left"


@contextlib.contextmanager
def watching(folder: Path | Store, tasks: Mapping[PartId, int]) -> Iterator[ProgressReport]:
    """Show within this context how many tasks are published; `tasks` is their number in each part.

    A part that is made again (repair) counts once its entry is newer than the start. In a store
    that does not tell when a file was written (`Store.present`), it counts from the start.
    """
    store, start = store_of(folder), time.time()
    waiting, stages = list(tasks), StageProgress(tasks, time.monotonic())

    def look() -> None:
        nonlocal waiting
        try:
            published = store.present([part.entry_path for part in waiting], start)
        except ShardError:
            return  # a network error must not end the run because of its progress bar
        done = [part for part in waiting if part.entry_path in published]
        waiting = [part for part in waiting if part.entry_path not in published]
        if done:
            note = stages.advance(done, time.monotonic())
            count = len(tasks) - len(waiting)
            progress.advance(
                sum(tasks[part] for part in done), f"{count}/{len(tasks)} parts, {note}"
            )

    with (
        ProgressReport("prior-gen", sum(tasks.values()), "tasks") as progress,
        looking(look, store.look_every),
    ):
        yield progress
