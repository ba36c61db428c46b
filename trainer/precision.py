"""In which type a processor computes what `train.precision` asks for."""

import platform

import torch


def computed_in(precision: str, device: torch.device) -> str:
    """`precision`, but "float32" where "bfloat16" would only be slow.

    Without AVX-512 PyTorch multiplies matrices of bfloat16 with loops that reach a hundredth of
    what it does in float32 (`benchmarks/trainer_speed.py` prints both rates). The digest of the
    run stays that of its config: another instruction set has other bits anyway, and
    `environment.json` names it.
    """
    if precision == "bfloat16" and device.type == "cpu" and not multiplies_bfloat16():
        return "float32"
    return precision


def multiplies_bfloat16() -> bool:
    """Whether matrices of bfloat16 have code of their own on this CPU, as far as is known."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    return torch.backends.cpu.get_cpu_capability() not in ("DEFAULT", "AVX2")
