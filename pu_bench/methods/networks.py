"""What the neural methods share: networks, batches and splits drawn from a generator of their own.

Nothing here reads or moves a global random state. The tables have at most some thousand rows, so
that all of them lie in one tensor and a batch is an index into it. Training runs in one
thread: more would only wait for each other at these sizes, and sums would depend on their number.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import torch
from torch import nn


def mlp(widths: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    """Linear layers with ReLU between them, widths[0] -> ... -> widths[-1].

    Weights and biases are uniform in +-1 / sqrt(fan-in), torch's own initialisation.
    """
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        linear = nn.utils.skip_init(nn.Linear, fan_in, fan_out)
        bound = fan_in**-0.5
        with torch.no_grad():
            linear.weight.uniform_(-bound, bound, generator=generator)
            linear.bias.uniform_(-bound, bound, generator=generator)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def tensors(*arrays: np.ndarray) -> tuple[torch.Tensor, ...]:
    """Arrays as float32 tensors of their own memory."""
    return tuple(torch.tensor(array, dtype=torch.float32) for array in arrays)


def generator_of(seed: int) -> torch.Generator:
    """A generator of its own for one fit."""
    return torch.Generator().manual_seed(seed)


def held_out(n: int, share: float, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Indices of a random training part and of the rest, round(share * n) rows but at least 1."""
    order = torch.randperm(n, generator=generator)
    n_held_out = max(round(share * n), 1)
    return order[n_held_out:], order[:n_held_out]


def batches(rows: torch.Tensor, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Endless batches of `size` rows [size, d] (all rows, where fewer), in reshuffled passes.

    A pass leaves out the rows that do not fill a last batch.
    """
    size = min(size, len(rows))
    while True:
        order = torch.randperm(len(rows), generator=generator)
        for start in range(0, len(rows) - size + 1, size):
            yield rows[order[start : start + size]]


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread within, as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
