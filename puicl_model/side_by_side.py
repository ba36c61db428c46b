"""Several computations of the network at a time, each in a thread of its own."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

import torch

from puicl_model.process_settings import threads

T = TypeVar("T")
R = TypeVar("R")


# Most cells that the network holds at a time on CPUs, unless a single computation has more: some
# .9 GB in float32 with the default weights.
_CELLS_AT_ONCE = 120_000


def side_by_side(
    function: Callable[[T], R], given: Sequence[T], n_cells: int, device: torch.device
) -> Iterator[R]:
    """Yield `function` of each of `given`, in order; on CPUs, several are computed at a time.

    n_cells: how many cells (rows times columns, including the label column) the network holds at
    most while it computes one of them, which bounds how many are computed at a time.

    PyTorch's threads are divided among them: a table's operations are so short that threads which
    share each of them wait for one another, several times as long where the cores have other work.
    What is left undone when the iterator is closed, or `function` raises, is not begun.
    """
    n_threads = torch.get_num_threads()
    at_once = min(n_threads, len(given), max(1, _CELLS_AT_ONCE // max(1, n_cells)))
    if at_once <= 1 or device.type != "cpu":
        yield from map(function, given)
        return

    def alone(each: T) -> R:
        with threads(n_threads // at_once):
            return function(each)

    pool = ThreadPoolExecutor(at_once)
    try:
        # The caller's context holds numpy's error settings.
        for future in [pool.submit(copy_context().run, alone, each) for each in given]:
            yield future.result()
    except BaseException:  # an interrupt does not wait for what has begun
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()  # the process may be forked next, which no thread should see
