"""Choose the type in which a device computes the blocks when bfloat16 is requested."""

import platform

import torch

from puicl_model.model import PUICL
from puicl_model.telling import tell


def computed_in(precision: str, device: torch.device) -> str:
    """Return `precision`, but "float32" instead of "bfloat16" where that is slower on `device`.

    Without AVX-512, PyTorch's bfloat16 matrix products reach a hundredth of the float32 rate; with
    AVX-512 but without its bfloat16 instructions, a third (`benchmarks/trainer_speed.py` prints
    both rates). The digest of a training run remains that of its config: results differ in bits
    between instruction sets anyway, and `environment.json` records the instruction set.
    """
    if precision == "bfloat16" and device.type == "cpu" and not multiplies_bfloat16():
        return "float32"
    return precision


def set_precision(network: PUICL, asked: str) -> None:
    """Set the precision of `network` to `asked`; warn and use float32 if that is faster."""
    network.precision = computed_in(asked, network.unlabeled_token.device)
    if network.precision != asked:
        tell(f"precision is {asked!r}, which is slow on this processor: float32 is used instead")


def multiplies_bfloat16() -> bool:
    """Whether this CPU has bfloat16 instructions; True if unknown."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    if torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2"):
        return False
    try:
        from puicl_model.machine_code import has_pair_dot
    except (ImportError, RuntimeError):  # no LLVM to ask
        return True
    return has_pair_dot()
