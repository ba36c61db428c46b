"""Runs the network over many contexts: like shapes in one batch, memory bounded by cells."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

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
    """How many threads torch uses outside `threads`, while some of the process are inside.

    The number is the whole process's, for threads that ask torch for the first time: each putting
    back what it found itself would leave behind what another had set for a while.
    """

    def __init__(self):
        self._lock = OwnLock()
        self._inside, self._outside, self._process = 0, 0, 0

    def enter(self) -> None:
        """Note the number, where nobody else is inside."""
        with self._lock.held():
            if self._process != os.getpid():  # those inside stayed behind when it was forked
                self._inside, self._process = 0, os.getpid()
            if not self._inside:
                self._outside = torch.get_num_threads()
            self._inside += 1

    def leave(self) -> None:
        """Put it back, for this thread and those that come."""
        with self._lock.held():
            self._inside -= 1
            torch.set_num_threads(self._outside)


_OF_PROCESS = _OfProcess()


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads within, None as many as it would; restores the number.

    However many threads are within at once: what is left behind is what the first of them found.
    """
    if count is None:  # others may be inside, so that what torch says may not be for long
        yield
        return
    _OF_PROCESS.enter()
    try:
        torch.set_num_threads(count)
        yield
    finally:
        _OF_PROCESS.leave()


def tiny_to_zero() -> np.errstate:
    """A context in which numbers too small for their type become zero, whatever numpy is told."""
    return np.errstate(under="ignore")


def own_precision(device: torch.device) -> torch.autocast:
    """A context in which the network computes as it was made, whatever the caller's autocast."""
    return torch.autocast(device.type, enabled=False)


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
