"""The `prior-gen` command that makes what a folder lacks, quoted for a shell."""

import shlex
from collections.abc import Iterable
from pathlib import Path

from shard_io.layout import MANIFEST
from shard_io.store import Store


def as_ranges(numbers: Iterable[int]) -> str:
    """Numbers as `1-3,7`: the form of `prior-gen --stages` and of a slice's manifest."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def command_for(folder: Path | Store, stages: Iterable[int], rest: str = "") -> str:
    """The command that makes what `folder` lacks of `stages`, with the folder's own plan."""
    place, own = shlex.quote(str(folder)), shlex.quote(f"{folder}/{MANIFEST}")
    return f"prior-gen --config {own} --stages {as_ranges(stages)} --out {place}{rest}"
