"""`metrics.jsonl`: wall time and held-out figures.

They are not in the ledger, which must be the same for equal runs: times never are.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainer.ledger import kept_lines, write_lines


class Metrics:
    """Appends lines with `step`, `seconds` of training until then, and figures.

    On resuming, the seconds continue from those of the last line kept. Time inside `paused` does
    not count.
    """

    def __init__(self, path: Path, steps_done: int):
        """Open the file, dropping what was written after the checkpoint resumed from.

        If a line is damaged, as by a power cut, `damage` names it, and it is dropped with all that
        follows: no step depends on these figures.
        """
        kept, damage = kept_lines(path, steps_done)
        self.damage = None if damage is None else str(damage)
        write_lines(path, kept)
        self._file = path.open("a", encoding="utf-8")
        self._before = kept[-1]["seconds"] if kept else 0.0
        # The last step whose held-out figures are recorded.
        self.evaluated = max((line["step"] for line in kept if "heldout_loss" in line), default=-1)
        # Digest of the held-out set of the last figures.
        self.heldout_set = next(
            (line["heldout_set"] for line in reversed(kept) if "heldout_set" in line), None
        )
        self._start = time.monotonic()

    def has_figures(self, step: int, heldout_set: str) -> bool:
        """Whether the last held-out figures are of this step and of this set (its digest).

        Figures of an earlier version, which did not record the set, count as being of this set.
        """
        return self.evaluated == step and self.heldout_set in (None, heldout_set)

    @property
    def seconds(self) -> float:
        """Seconds of training since the first start of the run."""
        return self._before + time.monotonic() - self._start

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time inside from `seconds`."""
        began = time.monotonic()
        yield
        self._start += time.monotonic() - began

    def write(self, step: int, **figures: Any) -> None:
        """Append one line; `step` counts the updates done."""
        line = {"step": step, "seconds": round(self.seconds, 3), **figures}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Sync and close."""
        os.fsync(self._file.fileno())
        self._file.close()
