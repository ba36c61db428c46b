"""The software and hardware on which cells are computed."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from puicl_config import cpu_name, git_commit

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "joblib", "pulearn", "tabpfn", "tabicl")


def describe_environment(jobs: int) -> dict[str, Any]:
    """Versions, machine, git commit and the number of parallel jobs."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "cpus": os.cpu_count(),
        "jobs": jobs,
        "git_commit": git_commit(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
