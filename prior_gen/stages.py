"""Parsing of `--stages` (`7`, `1-100`, `1-3,101-134`) and `--part-range` (`3/8`)."""

import re
from collections.abc import Sequence

from puicl_config import InputError, PriorConfig
from shard_io import PartId, as_ranges

# (i, n): the i-th of n shares, from 1.
PartRange = tuple[int, int]
WHOLE: PartRange = (1, 1)


def parse_stages(text: str, prior: PriorConfig) -> list[int]:
    """Parse `--stages` into sorted, distinct stage numbers; raises `InputError` if invalid."""
    stages: set[int] = set()
    for piece in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})\s*(?:-\s*(\d{1,18})\s*)?", piece)
        if not match:
            raise InputError(
                f"--stages {text}: {piece!r} is neither a stage nor a range like 1-100"
            )
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise InputError(
                f"--stages {text}: stage {first} lies above {last}; did you mean {last}-{first}?"
            )
        if first < 1 or last > prior.total_stages:
            raise InputError(
                f"--stages {text}: the plan has stages 1-{prior.total_stages} "
                f"(1-{prior.stages} the curriculum"
                + (
                    f", {as_ranges(tail_stages(prior))} the tail)"
                    if prior.tail_steps
                    else ", no tail)"
                )
            )
        stages.update(range(first, last + 1))
    return sorted(stages)


def tail_stages(prior: PriorConfig) -> list[int]:
    """The stages above K; raises `InputError` if the plan has none."""
    if not prior.tail_steps:
        raise InputError("--tail: this plan has no tail (prior.tail_steps is 0)")
    return list(range(prior.stages + 1, prior.total_stages + 1))


def parse_part_range(text: str) -> PartRange:
    """Parse `3/8` as (3, 8); raises `InputError` if it names no share."""
    match = re.fullmatch(r"\s*(\d{1,18})\s*/\s*(\d{1,18})\s*", text)
    if not match:
        raise InputError(f"--part-range {text!r} is not of the form i/n, such as 3/8")
    i, n = int(match[1]), int(match[2])
    if not 1 <= i <= n:
        raise InputError(
            f"--part-range {text}: there is no share {i} of {n}; shares count from 1/{max(n, 1)} "
            f"to {max(n, 1)}/{max(n, 1)}"
        )
    return i, n


def share_of(parts: Sequence[PartId], share: PartRange) -> list[PartId]:
    """Share i of n: every n-th part, so that expensive stages are spread over all shares.

    Depends on `parts` and `share` alone. The n shares are disjoint and together cover all parts.
    """
    i, n = share
    return list(parts[i - 1 :: n])
