"""Reading `--stages`: `7`, `1-100`, `1-3,101-134`."""

import re

from puicl_config import InputError, PriorConfig


def parse_stages(text: str, prior: PriorConfig) -> list[int]:
    """Stage numbers in order, without repeats; raises `InputError` naming what is wrong."""
    stages: set[int] = set()
    for piece in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", piece)
        if not match:
            raise InputError(
                f"--stages {text}: {piece!r} is neither a stage nor a range like 1-100"
            )
        first = int(match[1])
        last = int(match[2] or first)
        if first > last:
            raise InputError(
                f"--stages {text}: stage {first} lies above {last}; did you mean {last}-{first}?"
            )
        if first < 1 or last > prior.total_stages:
            raise InputError(
                f"--stages {text}: the plan has stages 1-{prior.total_stages} "
                f"(1-{prior.stages} the curriculum"
                + (
                    f", {prior.stages + 1}-{prior.total_stages} the tail)"
                    if prior.tail_steps
                    else ", no tail)"
                )
            )
        stages.update(range(first, last + 1))
    return sorted(stages)


def tail_stages(prior: PriorConfig) -> list[int]:
    """The stages above K."""
    if not prior.tail_steps:
        raise InputError("--tail: this plan has no tail (prior.tail_steps is 0)")
    return list(range(prior.stages + 1, prior.total_stages + 1))
