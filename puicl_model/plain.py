"""What tensors and layers are made as, whatever defaults the process has set in PyTorch."""

from typing import Any

import torch
from torch import nn

# Machine code and weights' files are float32 in the CPU's memory.
PLAIN: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}


class Linear(nn.Linear):
    """A linear layer of plain tensors which are not drawn yet: the network draws its own.

    As from `torch.nn.utils.skip_init`, which imports a symbolic algebra first, half of the time
    of a process's first small fit.
    """

    def __init__(self, n_in: int, n_out: int):
        super().__init__(n_in, n_out, **PLAIN)

    def reset_parameters(self) -> None:
        """Leave weights and bias as memory was."""
