"""The `prior-gen` command that makes what a folder lacks, ready to paste."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from shard_io.layout import MANIFEST
from shard_io.store import Store


def as_ranges(numbers: Iterable[int]) -> str:
    """Numbers as `prior-gen --stages` takes them, and a slice's manifest keeps them: `1-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def command_for(folder: Path | Store, stages: Iterable[int], rest: str = "") -> str:
    """The command that makes what `folder` lacks of `stages`, by the folder's own plan."""
    place, own = shlex.quote(str(folder)), shlex.quote(f"{folder}/{MANIFEST}")
    return f"prior-gen --config {own} --stages {as_ranges(stages)} --out {place}{rest}"
