"""Runs the network over many contexts: like shapes in one batch, memory bounded by cells."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from puicl_model.own_lock import OwnLock

# Cells (rows times columns, the label's included) in one forward pass. On two CPU cores larger
# batches are no faster; on a GPU they are.
_CELLS, _CELLS_ON_GPU = 30_000, 2_000_000


class Network(Protocol):
    """What answers a table, such as `PUICL`."""

    @property
    def unlabeled_token(self) -> torch.Tensor:
        """[E], on the network's device."""

    def __call__(self, x: torch.Tensor, n_labeled: int) -> torch.Tensor:
        """Logits [B, R - n_labeled, 2] of x [B, R, d], as `PUICL.forward`."""


@dataclass(frozen=True)
class Job:
    """One context: `rows()` makes its features [R, w] as float32, labelled positives first."""

    n_labeled: int
    n_rows: int
    n_columns: int
    rows: Callable[[], np.ndarray]

    @property
    def shape(self) -> tuple[int, int, int]:
        """What jobs must share to be run as one batch."""
        return self.n_labeled, self.n_rows, self.n_columns


def resolve_device(name: str) -> torch.device:
    """The device; "auto" is the GPU where there is one. Raises `ValueError` for unknown ones."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except TypeError:
        raise ValueError(f"device must be a name such as 'cpu' or 'auto', not {name!r}") from None
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {name!r}: {str(error).splitlines()[0]}") from None
    if device.type == "meta":
        raise ValueError("device 'meta' computes nothing")
    return device


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


@torch.inference_mode()
def log_odds(
    network: Network, jobs: Sequence[Job], done: Callable[[int], None] = lambda n: None
) -> list[np.ndarray]:
    """For each job the log-odds [R - n_labeled] of its unlabelled rows being positive.

    Holds one batch in memory at a time; `done` is told how many jobs were finished.
    """
    device = network.unlabeled_token.device
    together = _CELLS if device.type == "cpu" else _CELLS_ON_GPU
    by_shape: dict[tuple, list[int]] = {}
    for number, job in enumerate(jobs):
        by_shape.setdefault(job.shape, []).append(number)
    answers: list[np.ndarray] = [np.empty(0)] * len(jobs)
    for (n_labeled, n_rows, n_columns), numbers in by_shape.items():
        size = max(1, together // (n_rows * (n_columns + 1)))
        for start in range(0, len(numbers), size):
            batch = numbers[start : start + size]
            x = torch.from_numpy(np.stack([jobs[number].rows() for number in batch]))
            with own_precision(device):
                logits = network(x.to(device), n_labeled)
            for number, answer in zip(batch, difference(logits), strict=True):
                answers[number] = answer
            done(len(batch))
    return answers


def difference(logits: torch.Tensor) -> np.ndarray:
    """Log-odds [B, n] from logits [B, n, 2] of (negative, positive)."""
    logits = logits.cpu().double()
    return (logits[..., 1] - logits[..., 0]).numpy()
