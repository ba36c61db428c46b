"""Process-wide settings of PyTorch and numpy that hold while the classifier computes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import torch

from puicl_model.own_lock import OwnLock


class _OfProcess:
    """A process-wide setting that several threads change temporarily.

    If each thread restored the value that it had found, the last one might restore the temporary
    value of another thread. So the first thread's value is restored when the last one leaves.
    """

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], by_thread: bool):
        """by_thread: whether each thread additionally has its own value of the setting."""
        self._read, self._write, self._by_thread = read, write, by_thread
        self._lock = OwnLock()
        self._inside, self._outside, self._process = 0, None, 0

    @contextmanager
    def being(self, value: Any) -> Iterator[None]:
        """Set it to `value` inside the context, then restore the value from before all contexts."""
        with self._lock.held():
            if self._process != os.getpid():  # after a fork, the parent's threads are gone
                self._inside, self._process = 0, os.getpid()
            # Read in any case: only then does PyTorch keep what a new thread writes.
            found = self._read()
            if not self._inside:
                self._outside = found
            self._inside += 1
            # Do not set an equal value explicitly: it may derive from a more general setting.
            changes = self._by_thread or value != self._outside
            if changes:
                self._write(value)
        try:
            yield
        finally:
            with self._lock.held():
                self._inside -= 1
                if changes and (self._by_thread or not self._inside):
                    self._write(self._outside)

    def set_in_new_thread(self, value: Any) -> None:
        """Set it to `value` in this thread, which has just begun, until it ends.

        A thread's first look at PyTorch decides how many threads it has for good: as many as any
        thread has set last. So the process's value is put back at once, by a thread of its own.
        """
        with self._lock.held():
            of_process = self._read()
            if value == of_process:
                return
            self._write(value)
            back = Thread(target=self._write, args=(of_process,))
            try:
                back.start()
            except RuntimeError:  # no thread can be started
                self._write(of_process)
            else:
                back.join()


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # backends were set individually: no name for that, so leave them alone
        return "highest"


_THREADS = _OfProcess(torch.get_num_threads, torch.set_num_threads, by_thread=True)
_MATMULS = _OfProcess(_matmul_precision, torch.set_float32_matmul_precision, by_thread=False)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads inside the context, then restore the number; None changes none.

    If several threads are inside at once, the number that the first of them found is restored.
    """
    if count is None:  # do not set the current number: it may be another thread's temporary one
        yield
        return
    with _THREADS.being(count):
        yield


def set_threads_of_new_thread(count: int) -> None:
    """Let torch use `count` threads in this thread, which has just begun, and in no other."""
    _THREADS.set_in_new_thread(count)


def tiny_to_zero() -> np.errstate:
    """A context in which underflow silently gives zero, whatever numpy's error settings are."""
    return np.errstate(under="ignore")


@contextmanager
def own_precision(device: torch.device) -> Iterator[None]:
    """A context in which the network computes in its own precision.

    It overrides the caller's autocast and `torch.set_float32_matmul_precision`, which would let
    some processors multiply float32 as bfloat16 or TF32.
    """
    with _MATMULS.being("highest"), torch.autocast(device.type, enabled=False):
        yield
