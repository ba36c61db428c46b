"""The processes of one run: ranks, ordered exchange of gradients, and process-wide settings."""

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from puicl_config import InputError

# Gloo's messages for a lost peer: the exception's type does not tell it from a bug of ours.
_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


@dataclass(frozen=True)
class World:
    """This process's rank, the number of processes (`size`), and its device."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and prints; errors are printed by each process."""
        return self.rank == 0

    def mine(self, count: int) -> range:
        """Indices of this process's share of `count` tasks, dealt in turn; may be empty."""
        return range(self.rank, count, self.size)

    def gather(self, rows: Tensor, count: int) -> Tensor:
        """Gather all processes' rows [rounds, n] as [count, n].

        The first row of each process comes first, then the second of each, and so on. Raises
        `InputError` if another process has stopped.
        """
        if self.size == 1:
            return rows
        gathered = [torch.empty_like(rows) for _ in range(self.size)]
        try:
            dist.all_gather(gathered, rows)
        except RuntimeError as error:
            if not any(sign in str(error) for sign in _LOST):
                raise
            raise InputError(
                "another process of this run stopped; its own message, if it left one, says "
                "why. The same command goes on from the newest checkpoint"
            ) from error
        return torch.stack(gathered, dim=1).flatten(0, 1)[:count]


def join_world(device: str) -> World:
    """Join the processes that torchrun started, over gloo on CPU and NCCL on CUDA.

    Raises `InputError` if `device` is not available or the processes cannot connect.
    """
    rank, size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        if not torch.cuda.is_available():
            raise InputError("train.device is cuda, but torch sees no GPU here")
        local = int(os.environ.get("LOCAL_RANK", 0))
        if local >= torch.cuda.device_count():
            raise InputError(
                f"process {local} of this node has no GPU: there are {torch.cuda.device_count()}; "
                "start fewer processes"
            )
        torch.cuda.set_device(local)
        place = torch.device("cuda", local)
    else:
        place = torch.device("cpu")
    if size > 1:
        try:
            dist.init_process_group("nccl" if device == "cuda" else "gloo")
        except (RuntimeError, ValueError) as error:  # from c10d or gloo; a bad variable
            reason = str(error).partition("\n")[0].strip().rstrip(".?")
            raise InputError(
                f"the {size} processes of this run could not connect to each other ({reason}): if "
                "another one stopped, its own message, if it left one, says why; start the same "
                "command again"
            ) from error
    return World(rank, size, place)


def leave_world() -> None:
    """End the process group where there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def choose_algorithms(deterministic: bool) -> None:
    """Set PyTorch's process-wide numerical options; call it before any work on a GPU."""
    if deterministic:
        # cuBLAS reads it at its first call; deterministic algorithms refuse to run without it.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic)
    # Filling fresh memory would expose reads of uninitialized memory. There are none here, and it
    # costs a pass over each tensor.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    # cuDNN's attention builds a plan for each shape, and every microbatch has its own shape.
    torch.backends.cuda.enable_cudnn_sdp(False)
