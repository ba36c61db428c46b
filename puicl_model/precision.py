"""In which type a processor computes the blocks, where bfloat16 is asked for."""

import platform

import torch

from puicl_model.model import PUICL
from puicl_model.telling import tell


def computed_in(precision: str, device: torch.device) -> str:
    """`precision`, but "float32" where "bfloat16" would only be slow.

    Without AVX-512 PyTorch multiplies matrices of bfloat16 with loops that reach a hundredth of
    what it does in float32, with AVX-512 that has no instructions for bfloat16 a third
    (`benchmarks/trainer_speed.py` prints both rates). The digest of a trainer's run stays that of
    its config: another instruction set has other bits anyway, and `environment.json` names it.
    """
    if precision == "bfloat16" and device.type == "cpu" and not multiplies_bfloat16():
        return "float32"
    return precision


def set_precision(network: PUICL, asked: str) -> None:
    """Have `network` compute in what is asked for; warns where its device is better at float32."""
    network.precision = computed_in(asked, network.unlabeled_token.device)
    if network.precision != asked:
        tell(f"precision is {asked!r}, which is slow on this processor: float32 is computed")


def multiplies_bfloat16() -> bool:
    """Whether this CPU has instructions for bfloat16, as far as is known."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    if torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2"):
        return False
    try:
        from puicl_model.machine_code import has_pair_dot
    except (ImportError, RuntimeError):  # no LLVM to ask
        return True
    return has_pair_dot()
