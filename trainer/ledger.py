"""`ledger.jsonl`: one line for each step, enough to find where two runs diverge."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from puicl_config import InputError, write_atomically
from trainer.sampler import Address


class Ledger:
    """Appends lines; floats are written as `float.hex()`, so equal text means equal bits."""

    def __init__(self, path: Path, steps_done: int):
        """Open the ledger, dropping what was written after the checkpoint resumed from.

        `lacks` is the number of earlier steps that are missing from it. Raises `InputError` if a
        line of one of these steps is damaged.
        """
        self._path = path
        kept, damage = kept_lines(path, steps_done - 1)
        if damage and steps_done > 0 and (not kept or kept[-1]["step"] < steps_done - 1):
            raise damage
        write_lines(path, kept)
        self.lacks = steps_done - len({line["step"] for line in kept})
        self._file = path.open("a", encoding="utf-8")

    def write(
        self,
        step: int,
        loss: float,
        gradient_norm: float,
        learning_rate: float,
        microbatches: list[Address],
        data: str,
        weights: str | None,
    ) -> None:
        """Record one update; `data` is the running hash of the parts consumed so far."""
        line = {
            "step": step,
            "loss": loss.hex(),
            "gradient_norm": gradient_norm.hex(),
            "learning_rate": learning_rate.hex(),
            "microbatches": microbatches,
            "data": data[:16],
        }
        if weights:
            line["weights"] = weights
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Make all lines durable."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        self._file.close()


def kept_lines(path: Path, last: int) -> tuple[list[dict[str, Any]], InputError | None]:
    """Lines of steps up to `last`, before the first damaged line, and an error naming that line."""
    kept = []
    try:
        for line in read_ledger(path):
            if line["step"] <= last:
                kept.append(line)
    except InputError as damage:
        return kept, damage
    return kept, None


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    """Replace the file by these lines."""
    write_atomically(path, "".join(json.dumps(line) + "\n" for line in lines).encode())


def read_ledger(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete lines of a ledger, without a last line cut short by a kill.

    Yields nothing if there is no file. Raises `InputError` naming a line that is damaged.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, text in enumerate(file, start=1):
            if not text.endswith("\n"):
                return
            try:
                line = json.loads(text)
                line["step"] + 1  # a number
            except (ValueError, TypeError, KeyError):
                raise InputError(f"{path}: line {number} is damaged") from None
            yield line
