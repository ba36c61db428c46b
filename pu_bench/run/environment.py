"""The software and hardware on which cells are computed."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from puicl_config import cpu_name, git_commit

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "joblib", "pulearn", "tabpfn", "tabicl")
# Entries that change no figure, or say nothing of why one changes.
_NO_CAUSE = ("cpus", "jobs", "git_commit")


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


def other_than_here(recorded: Sequence[dict[str, Any]]) -> str:
    """Software and hardware in the `recorded` environments that is not that of this one, as text.

    "" if there is none. Entries that a record lacks are ignored: older versions recorded fewer.
    """
    others: dict[str, None] = {}  # in order, each once
    for key, here in describe_environment(jobs=1).items():
        if key not in _NO_CAUSE:
            others |= {
                f"{key} {each[key]}": None for each in recorded if each.get(key, here) != here
            }
    return ", ".join(others)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
