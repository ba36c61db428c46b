"""Several computations of the network at a time, each in a thread of its own."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, InvalidStateError, wait
from contextlib import suppress
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

import torch

from puicl_model.process_settings import set_threads_of_new_thread

T = TypeVar("T")
R = TypeVar("R")


# Most cells that the network holds at a time on CPUs, unless a single computation has more: some
# .9 GB in float32 with the default weights.
_CELLS_AT_ONCE = 120_000


def side_by_side(
    function: Callable[[T], R],
    given: Sequence[T],
    n_cells: int,
    device: torch.device,
    most_threads: int | None = None,
) -> Generator[R, None, None]:
    """Yield `function` of each of `given`, in order; on CPUs, several are computed at a time.

    n_cells: how many cells (rows times columns, including the label column) the network holds at
    most while it computes one of them, which bounds how many are computed at a time. most_threads:
    how many of PyTorch's threads to use at most (default: all).

    PyTorch's threads are divided among them: a table's operations are so short that threads which
    share each of them wait for one another, several times as long where the cores have other work.

    Once `function` has raised or the generator is closed, no more of them are begun, and what has
    begun is not waited for. Close it (`contextlib.closing`) where anything else may raise: a
    generator lives on for as long as somebody holds the traceback.
    """
    all_threads = torch.get_num_threads()
    n_threads = min(all_threads, most_threads or all_threads)
    at_once = min(n_threads, len(given), max(1, _CELLS_AT_ONCE // max(1, n_cells)))
    if device.type != "cpu" or (at_once <= 1 and n_threads == all_threads):
        yield from map(function, given)
        return
    futures: deque[Future[R]] = deque(Future() for _ in given)
    todo = deque(zip(given, futures, strict=True))
    failed: Future[R] = Future()  # asked beside each answer, whose own turn may be hours away

    def work() -> None:
        try:
            set_threads_of_new_thread(n_threads // at_once)
        finally:  # whatever happens, somebody waits for the answers
            while _computed_one(function, todo, failed):
                pass

    # Threads of our own rather than an executor's, which starts none once the main thread has
    # ended, and which Python would wait for at its end even if a daemon thread asked for them.
    workers: list[Thread] = []
    try:
        for _ in range(at_once):
            # The caller's context holds numpy's error settings.
            worker = Thread(target=copy_context().run, args=(work,))
            try:
                worker.start()
            except RuntimeError:  # a limit of threads is reached, or the interpreter is ending
                break
            workers.append(worker)
        if not workers:
            yield from map(function, given)
            return
        while futures:
            wait((futures[0], failed), return_when=FIRST_COMPLETED)
            if failed.done():
                failed.result()
            yield futures.popleft().result()
    except BaseException:  # an interrupt does not wait for what has begun
        todo.clear()
        futures.clear()
        failed = Future()  # the traceback holds this frame: it need not hold itself
        raise
    for worker in workers:  # the process may be forked next, which no thread should see
        worker.join()


def _computed_one(
    function: Callable[[T], R], todo: deque[tuple[T, Future[R]]], failed: Future[R]
) -> bool:
    """Compute the first of `todo` into its future; return whether there was one.

    An error is set in `failed` and empties `todo`.
    """
    try:
        each, future = todo.popleft()
    except IndexError:
        return False
    try:
        future.set_result(function(each))
    except BaseException as error:
        todo.clear()
        with suppress(InvalidStateError):  # another thread failed first
            failed.set_exception(error)
        del failed  # the traceback holds this frame: it need not hold itself
    return True
