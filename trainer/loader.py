"""Microbatches as tensors, read ahead of the step that needs them."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

import torch
from torch import Tensor

from puicl_config import InputError
from puicl_config.workers import STOPS, await_end_of, leave_signals_to_parent
from shard_io import Microbatch, ShardReader
from trainer.sampler import Address


class Batch(NamedTuple):
    """One microbatch on its way to the device. x: [T, R, d] float32, y: [T, R - P] int64."""

    address: Address
    x: Tensor
    y: Tensor
    n_labeled: int


def load(reader: ShardReader, address: Address) -> Batch:
    """Read one microbatch; raises `ShardError` where its part is missing or damaged."""
    return as_batch(address, reader[address])


def as_batch(address: Address, microbatch: Microbatch) -> Batch:
    """A microbatch that answers `address`, as tensors."""
    return Batch(
        address=address,
        x=torch.from_numpy(microbatch.x).float(),
        y=torch.from_numpy(microbatch.y).long(),
        n_labeled=microbatch.n_labeled,
    )


def rounded(batch: Batch, multiple: int) -> Batch:
    """The batch with P and R - P cut down to multiples of `multiple`, where they reach it once.

    Rows of a task stand in random order, so that its first ones are a fair sample; of very few
    unlabelled rows, those of one class may all be among what is cut.
    """
    n_labeled, n_unlabeled = (
        max(count - count % multiple, min(count, multiple))
        for count in (batch.n_labeled, batch.y.shape[1])
    )
    labeled = batch.x[:, :n_labeled]
    unlabeled = batch.x[:, batch.n_labeled : batch.n_labeled + n_unlabeled]
    x = torch.cat([labeled, unlabeled], dim=1)
    return batch._replace(x=x, y=batch.y[:, :n_unlabeled], n_labeled=n_labeled)


def read_ahead(
    reader: ShardReader,
    addresses: Sequence[Address],
    threads: int,
    ahead: int = 4,
    is_there: Callable[[Address], bool] = lambda address: True,
    processes: int = 0,
    open_again: Callable[[], ShardReader] | None = None,
) -> Iterator[Batch]:
    """The microbatches of `addresses` in this very order, whatever the number of threads.

    Nothing is read ahead before `is_there` says so; what is asked for is read in any case. Raises
    `InputError` where a process that reads was killed.
    `processes`, if any, read instead of threads, each with the reader that `open_again` (which can
    be pickled) gives it: reading then takes no time from the thread that feeds a GPU.
    """
    if threads == 0 and processes == 0:
        for address in addresses:
            yield load(reader, address)
        return
    if processes:
        assert open_again is not None, "processes cannot be given a reader"
        pool: Executor = _processes(processes, open_again)
        read: Callable[[Address], Any] = _read_here
    else:
        pool, read = ThreadPoolExecutor(threads), partial(load, reader)
    remaining = deque(addresses)
    with pool:
        waiting: deque[tuple[Address, Future]] = deque()
        try:
            while waiting or remaining:
                while remaining and len(waiting) <= max(ahead, threads, 2 * processes):
                    if waiting and not is_there(remaining[0]):
                        break
                    address = remaining.popleft()
                    waiting.append((address, pool.submit(read, address)))
                address, future = waiting.popleft()
                found = future.result()
                yield as_batch(address, found) if processes else found
        except BrokenProcessPool:
            raise InputError(
                "a loader process was killed from outside (perhaps the system ran out of memory): "
                "the same command goes on from the last checkpoint, perhaps with fewer "
                "train.loader_processes"
            ) from None
        finally:
            for _, future in waiting:
                future.cancel()


# A loader process' own reader.
_reader: ShardReader


def _processes(count: int, open_again: Callable[[], ShardReader]) -> Executor:
    """Processes that read, which signals to the whole group do not reach, and end with this one."""
    # Not forked: this process has threads, and perhaps a GPU.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, spawn, _open_here, (open_again, os.getpid()))
    # It unblocks signals as it starts, which those blocked then would not be.
    resource_tracker.ensure_running()
    # They are born with this mask: seconds pass until `_open_here` is imported there.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        for _ in range(count):
            pool.submit(int)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pool


def _open_here(open_again: Callable[[], ShardReader], parent: int) -> None:
    global _reader
    leave_signals_to_parent()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _reader = open_again()


def _end_with(parent: int) -> None:
    await_end_of(parent)
    os._exit(1)


def _read_here(address: Address) -> Microbatch:
    return _reader[address]
