"""What tensors are made as, whatever defaults the process has set in PyTorch."""

from typing import Any

import torch

# Machine code and weights' files are float32 in the CPU's memory.
PLAIN: dict[str, Any] = {"dtype": torch.float32, "device": "cpu"}
