"""What PyTorch and numpy are told for the whole process, while the classifier computes."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from puicl_model.own_lock import OwnLock


class _OfProcess:
    """A setting of the whole process, which threads change while they are inside.

    Each putting back what it found itself would leave behind what another had set for a while.
    """

    def __init__(self, read: Callable[[], Any], write: Callable[[Any], None], by_thread: bool):
        """by_thread: whether each thread has the setting for itself, too."""
        self._read, self._write, self._by_thread = read, write, by_thread
        self._lock = OwnLock()
        self._inside, self._outside, self._process = 0, None, 0

    @contextmanager
    def being(self, value: Any) -> Iterator[None]:
        """Set it to `value` within; what the first of those inside found is put back."""
        with self._lock.held():
            if self._process != os.getpid():  # those inside stayed behind when it was forked
                self._inside, self._process = 0, os.getpid()
            if not self._inside:
                self._outside = self._read()
            self._inside += 1
            # What is as it should be may come from a setting above it, and stays unset.
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


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # backends were set one by one, which has no name: they stay as they are
        return "highest"


_THREADS = _OfProcess(torch.get_num_threads, torch.set_num_threads, by_thread=True)
_MATMULS = _OfProcess(_matmul_precision, torch.set_float32_matmul_precision, by_thread=False)


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads within, None as many as it would; restores the number.

    However many threads are within at once: what is left behind is what the first of them found.
    """
    if count is None:  # others may be inside, so that what torch says may not be for long
        yield
        return
    with _THREADS.being(count):
        yield


def tiny_to_zero() -> np.errstate:
    """A context in which numbers too small for their type become zero, whatever numpy is told."""
    return np.errstate(under="ignore")


@contextmanager
def own_precision(device: torch.device) -> Iterator[None]:
    """A context in which the network computes as it was made.

    That is whatever the caller's autocast, and `torch.set_float32_matmul_precision`, which would
    have the processors that can multiply float32 as bfloat16 or TF32.
    """
    with _MATMULS.being("highest"), torch.autocast(device.type, enabled=False):
        yield
