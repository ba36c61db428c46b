"""The processes of one run: who computes which microbatch, gradients in order, and settings."""

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from puicl_config import InputError

# What gloo says of a process that has gone: no type of its own tells it from our mistakes.
_LOST = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")


@dataclass(frozen=True)
class World:
    """This process's place, as torchrun tells it, and its device."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks; errors each process tells itself."""
        return self.rank == 0

    def mine(self, count: int) -> range:
        """Which of `count` equal pieces of work, in turn, are this process's; may be none."""
        return range(self.rank, count, self.size)

    def gather(self, rows: Tensor, count: int) -> Tensor:
        """All processes' rows [rounds, n] as [count, n]: the first of each, then the second, ...

        Raises `InputError` where one of the processes is no longer there.
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

    Raises `InputError` where `device` is not there, and where the processes do not find together.
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
        except (RuntimeError, ValueError) as error:  # all of c10d's and gloo's; a bad variable
            reason = str(error).partition("\n")[0].strip().rstrip(".?")
            raise InputError(
                f"the {size} processes of this run did not find together ({reason}): if another "
                "one stopped, its own message, if it left one, says why; start the same command "
                "again"
            ) from error
    return World(rank, size, place)


def leave_world() -> None:
    """End the process group where there is one."""
    if dist.is_initialized():
        dist.destroy_process_group()


def choose_algorithms(deterministic: bool) -> None:
    """Settings for the whole process, before the first call to a GPU."""
    if deterministic:
        # Needed by cuBLAS before its first call; deterministic algorithms refuse to run without.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(deterministic)
    # Filling fresh memory shows reads of it; nothing here reads any, and it is one pass the more.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    # cuDNN's attention makes a plan for each shape, and every microbatch has its own.
    torch.backends.cuda.enable_cudnn_sdp(False)
