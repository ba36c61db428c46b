"""Load microbatches as tensors, ahead of the step that needs them."""

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
    """One microbatch on the host, with P = `n_labeled`.

    x: [T, R, d] float32, the P labelled rows first; y: [T, R - P] int64, classes of the others.
    """

    address: Address
    x: Tensor
    y: Tensor
    n_labeled: int


def load(reader: ShardReader, address: Address) -> Batch:
    """Read one microbatch; raises `ShardError` if its part is missing or damaged."""
    return as_batch(address, reader[address])


def as_batch(address: Address, microbatch: Microbatch) -> Batch:
    """The microbatch that was read at `address`, as tensors."""
    return Batch(
        address=address,
        x=torch.from_numpy(microbatch.x).float(),
        y=torch.from_numpy(microbatch.y).long(),
        n_labeled=microbatch.n_labeled,
    )


def rounded(batch: Batch, multiple: int) -> Batch:
    """The batch with P and R - P each cut down to a multiple of `multiple`, if not below it.

    If very few rows are unlabelled, all of one class may be cut.
    """
    n_labeled, n_unlabeled = (
        max(count - count % multiple, min(count, multiple))
        for count in (batch.n_labeled, batch.y.shape[1])
    )
    return first_rows(batch, n_labeled, n_unlabeled)


def first_rows(batch: Batch, n_labeled: int, n_unlabeled: int) -> Batch:
    """The batch with the first `n_labeled` labelled and `n_unlabeled` unlabelled rows of each task.

    The rows of a task are in random order, so its first rows are a fair sample.
    """
    if (n_labeled, n_unlabeled) == (batch.n_labeled, batch.y.shape[1]):
        return batch
    unlabeled = batch.x[:, batch.n_labeled : batch.n_labeled + n_unlabeled]
    x = torch.cat([batch.x[:, :n_labeled], unlabeled], dim=1)
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
    """Yield the microbatches of `addresses` in order, whatever the number of threads.

    An address is read ahead only once `is_there` is true of it; the one that is due is read in any
    case. With `processes` above 0, that many processes read instead of threads, each with a reader
    of its own made by `open_again` (which must be picklable), so that reading takes no time from
    the thread that feeds a GPU. Raises `ShardError` if a part is missing or damaged, and
    `InputError` if a loader process was killed.
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


# The reader of this loader process.
_reader: ShardReader


def _processes(count: int, open_again: Callable[[], ShardReader]) -> Executor:
    """A pool of loader processes that ignore signals to the process group and end with this one."""
    # Not forked: this process has threads, and perhaps a GPU.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, spawn, _open_here, (open_again, os.getpid()))
    # Start the tracker first: starting it would unblock the signals blocked below.
    resource_tracker.ensure_running()
    # The processes inherit this mask, as seconds pass until they import `_open_here`.
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
