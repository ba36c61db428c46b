"""Types and layers that do not depend on PyTorch's default dtype and device in the process."""

from typing import Any

import torch
from torch import nn

# Machine code and files of weights need float32 in CPU memory.
PLAIN: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}


class Linear(nn.Linear):
    """A linear layer of `PLAIN` tensors without initialisation, which the network does itself.

    Equivalent to `torch.nn.utils.skip_init`, which however imports a symbolic algebra package: that
    takes half of the time of a process's first small fit.
    """

    def __init__(self, n_in: int, n_out: int):
        super().__init__(n_in, n_out, **PLAIN)

    def reset_parameters(self) -> None:
        """Leave weights and bias uninitialised."""
