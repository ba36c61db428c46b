"""Run the network on many contexts: equal shapes share batches, and cells bound the memory."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from puicl_model.process_settings import own_precision
from puicl_model.side_by_side import side_by_side

# Most cells (rows times columns, including the label column) in one batch, unless a single context
# has more. On two CPU cores larger batches are no faster; on a GPU they are.
_CELLS, _CELLS_ON_GPU = 30_000, 2_000_000


class Network(Protocol):
    """A network that classifies the unlabelled rows of a table, such as `PUICL`."""

    @property
    def unlabeled_token(self) -> torch.Tensor:
        """A parameter [E], which tells the network's device."""

    def __call__(self, x: torch.Tensor, n_labeled: int) -> torch.Tensor:
        """Logits [B, R - n_labeled, 2] for x [B, R, d], as in `PUICL.forward`."""


@dataclass(frozen=True)
class Job:
    """One context: `rows()` returns its features [R, w] as float32, labelled positives first."""

    n_labeled: int
    n_rows: int
    n_columns: int
    rows: Callable[[], np.ndarray]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Sizes that jobs must share to run in one batch."""
        return self.n_labeled, self.n_rows, self.n_columns

    @property
    def n_cells(self) -> int:
        """Cells that the network reads, including the label column."""
        return self.n_rows * (self.n_columns + 1)


def resolve_device(name: str) -> torch.device:
    """The torch device of that name; "auto" is a CUDA GPU if there is one, else the CPU.

    Raises `ValueError` if the device is unknown, not available, or "meta".
    """
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


def log_odds(
    network: Network,
    jobs: Sequence[Job],
    done: Callable[[int], None] = lambda n: None,
    one_at_a_time: bool = False,
) -> list[np.ndarray]:
    """Log-odds [R - n_labeled] of being positive for each job's unlabelled rows.

    On a CPU each thread computes batches of its own, as far as memory allows. Calls `done` after
    each batch with its number of jobs. one_at_a_time: whether all threads compute each batch
    together instead, in the caller's thread, because no two may call `network` at a time.
    """
    device = network.unlabeled_token.device

    @torch.inference_mode()
    def answered(batch: list[int]) -> np.ndarray:
        x = torch.from_numpy(np.stack([jobs[number].rows() for number in batch]))
        with own_precision(device):
            return difference(network(x.to(device), jobs[batch[0]].n_labeled))

    batches = _batches(jobs, device, 1 if one_at_a_time else torch.get_num_threads())
    largest = max((len(batch) * jobs[batch[0]].n_cells for batch in batches), default=0)
    answers: list[np.ndarray] = [np.empty(0)] * len(jobs)
    if one_at_a_time:
        answered_batches = (answered(batch) for batch in batches)
    else:
        answered_batches = side_by_side(answered, batches, largest, device)
    with closing(answered_batches) as together:
        for batch, theirs in zip(batches, together, strict=True):
            for number, answer in zip(batch, theirs, strict=True):
                answers[number] = answer
            done(len(batch))
    return answers


def _batches(jobs: Sequence[Job], device: torch.device, n_threads: int) -> list[list[int]]:
    """Numbers of jobs of one shape each, with work for every thread where there is enough."""
    cpu = device.type == "cpu"
    by_shape: dict[tuple, list[int]] = {}
    for number, job in enumerate(jobs):
        by_shape.setdefault(job.shape, []).append(number)
    batches = []
    for numbers in by_shape.values():
        size = max(1, (_CELLS if cpu else _CELLS_ON_GPU) // jobs[numbers[0]].n_cells)
        if cpu and n_threads > 1:  # as many batches for each thread, equally large ones
            for_each = -(-len(numbers) // (size * n_threads))
            size = -(-len(numbers) // (for_each * n_threads))
        batches += [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return batches


def difference(logits: torch.Tensor) -> np.ndarray:
    """Log-odds [B, n] from logits [B, n, 2] of (negative, positive)."""
    logits = logits.cpu().double()
    return (logits[..., 1] - logits[..., 0]).numpy()
