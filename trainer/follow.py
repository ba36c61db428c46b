"""Follow mode: train on shards that `prior-gen` is still writing (`train.follow`)."""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from puicl_config import duration
from shard_io import (
    MANIFEST,
    NoShards,
    PartId,
    ShardError,
    ShardReader,
    folder_of,
    read_manifest,
    store_of,
)
from trainer.sampler import Address
from trainer.world import World

# Seconds between two progress lines during a wait.
_SPEAK_EVERY = 30.0


def await_manifest(
    shards: str | Path,
    world: World,
    asked: Callable[[], bool],
    timeout: float,
    say: Callable[[str], None],
) -> bool:
    """Wait until `prior-gen` has begun to write `shards`, and say so once.

    Returns False, on all processes, if one was asked to stop before. Raises `ShardError` after
    `timeout` seconds.
    """
    folder = folder_of(shards)
    store, began, said = store_of(folder), time.monotonic(), False
    while True:
        waits = not store.present([MANIFEST])
        mine = [waits, asked(), time.monotonic() - began > timeout]
        waits, stops, late = agreed(world, mine)
        if not waits or stops:
            return not waits
        if late:
            with contextlib.suppress(NoShards):
                read_manifest(folder)  # raises where parts are there that lost it
            raise ShardError(
                f"waited {duration(timeout)} and {folder} still holds no shards: is prior-gen "
                "writing there?"
            )
        if not said:
            say(f"waiting for prior-gen to begin {folder}")
            said = True
        time.sleep(store.look_every)


def agreed(world: World, mine: Sequence[bool]) -> list[bool]:
    """Element-wise `any` of the processes' lists; the same result on all of them."""
    return _gathered(world, mine).any(dim=0).tolist()


def _gathered(world: World, mine: Sequence[bool]) -> torch.Tensor:
    """All processes' lists as a boolean tensor [processes, len(mine)]."""
    row = torch.tensor([mine], dtype=torch.float32, device=world.device)
    return world.gather(row, world.size) > 0


class Follower:
    """Holds all processes back until each can read its microbatches of a step.

    Waiting changes no bit: the sampler alone decides what is read, and in which order.
    """

    def __init__(
        self,
        reader: ShardReader,
        world: World,
        asked: Callable[[], bool],
        timeout: float,
        say: Callable[[str], None],
    ):
        self._reader, self._world, self._asked = reader, world, asked
        self._timeout, self._say = timeout, say

    def wait(self, addresses: Sequence[Address]) -> bool:
        """Wait until every process can read `addresses`; False if one was asked to stop.

        `addresses` must be all of the step, so that all processes wait for the same parts. Raises
        `ShardError`, on every process, once none has seen a new part for `timeout` seconds.
        """
        began = came = time.monotonic()
        spoke: float | None = None
        before: int | None = None
        while True:
            awaited = self._awaited(addresses)
            now = time.monotonic()
            if before is None or len(awaited) < before:
                came, before = now, len(awaited)
            # Decide together: a process that stopped alone would leave the others waiting for its
            # gradients.
            mine = [bool(awaited), self._asked(), now - came > self._timeout]
            everyone = _gathered(self._world, mine)
            waits, stops, _ = everyone.any(dim=0).tolist()
            if not waits or stops:
                return not waits
            # With separate disks, parts may still be arriving on one that another has already.
            if everyone[:, 2].all():
                first = f" for {awaited[0].name} in" if awaited else " for parts of"
                raise ShardError(
                    f"waited {duration(self._timeout)}{first} {self._reader.folder} and nothing "
                    "came: is prior-gen still writing? The same command goes on from here"
                )
            if awaited and (spoke is None or now - spoke > _SPEAK_EVERY):
                spoke = now
                self._say(self._sentence(awaited, now - began))
            time.sleep(self._reader.look_every)

    def _awaited(self, addresses: Sequence[Address]) -> list[PartId]:
        parts = {part for address in addresses for part in self._reader.awaited_parts(address)}
        return sorted(parts)

    def _sentence(self, awaited: Sequence[PartId], seconds: float) -> str:
        stage = awaited[0].stage
        of = len(self._reader.layout.parts_of_stage(stage))
        there = of - len(self._reader.missing_parts([stage]))
        since = f" for {duration(seconds)}" if seconds >= 1 else ""
        return f"waiting{since} for {awaited[0].name}: {there} of {of} parts of its stage are there"
