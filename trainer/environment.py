"""`environment.json`: on what software and hardware each stretch of a run was computed."""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from puicl_config import InputError, cpu_name, git_commit, write_atomically
from puicl_model.fused import has_machine_code, has_tile_code
from trainer.world import World

# Variables that make the same libraries choose other instructions, or other numbers of threads than
# `train.threads_per_process`: sums are then cut elsewhere.
_VARIABLES = (
    "ATEN_CPU_CAPABILITY",
    "CUBLAS_WORKSPACE_CONFIG",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "KMP_ALL_THREADS",
    "KMP_DETERMINISTIC_REDUCTION",
    "KMP_DEVICE_THREAD_LIMIT",
    "KMP_DYNAMIC_MODE",
    "MKL_CBWR",
    "MKL_DOMAIN_NUM_THREADS",
    "MKL_DYNAMIC",
    "MKL_ENABLE_INSTRUCTIONS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_DYNAMIC",
    "OMP_MAX_ACTIVE_LEVELS",
    "OMP_NESTED",
    "OMP_SCHEDULE",
    "OMP_THREAD_LIMIT",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
_PACKAGES = ("torch", "numpy", "zarr", "numcodecs", "safetensors", "llvmlite")


def describe_environment(world: World, threads: int) -> dict[str, Any]:
    """Versions, instruction set or GPU, threads and git commit: what can change a bit."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name(world.device) if world.device.type == "cuda" else None,
        "cuda": torch.version.cuda if world.device.type == "cuda" else None,
        "threads_per_process": threads,
        "machine_code": has_machine_code(),
        "tile_code": has_tile_code(),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "git_commit": git_commit(),
    }


def record_environment(path: Path, environment: dict[str, Any], step: int) -> list[str]:
    """Append to the run's list where it differs from the last; returns what differs.

    What an earlier version did not write down is not known to differ.
    """
    try:
        stretches = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except ValueError:
        raise InputError(f"{path} is damaged: put it back, or remove it to record anew") from None
    before = stretches[-1] if stretches else {}
    if before:
        before = {"tile_code": False, **before}  # versions that did not write it down had none
    differing = [
        f"{key}: {before.get(key)} before, {value} now"
        for key, value in environment.items()
        if key in before and before[key] != value
    ]
    if not stretches or differing:
        stretches.append({"from_step": step, **environment})
        write_atomically(path, (json.dumps(stretches, indent=1) + "\n").encode())
    return differing
