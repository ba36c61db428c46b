"""`environment.json`: the software and hardware on which each stretch of a run was computed."""

import json
import os
import platform
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from puicl_config import InputError, cpu_facts, cpu_name, git_commit, write_atomically
from puicl_model.fused import has_machine_code, has_tile_code
from trainer.agreement import differences, gathered
from trainer.world import World

# Variables that make the same libraries use other instructions or another number of threads than
# `train.threads_per_process`, and so split sums at other places.
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
# Keys in which the processes of one run may differ. A processor of another model with the same
# instruction sets is only reported.
_MAY_DIFFER = ("python", "zarr", "numcodecs", "safetensors")
_TOLD = ("cpu",)
# Prefixes of the instruction sets that libraries choose among.
_KINDS = ("sse", "ssse", "avx", "fma", "f16c", "amx", "asimd", "sve", "bf16", "i8mm")
_PACKAGES = ("torch", "numpy", "zarr", "numcodecs", "safetensors", "llvmlite")


def describe_environment(world: World, threads: int) -> dict[str, Any]:
    """Versions, instruction sets, GPU, threads and git commit: everything that can change a bit."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "instruction_sets": _instruction_sets(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name(world.device) if world.device.type == "cuda" else None,
        "cuda": torch.version.cuda if world.device.type == "cuda" else None,
        "threads_per_process": threads,
        "machine_code": has_machine_code(),
        "tile_code": has_tile_code(),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "git_commit": git_commit(),
    }


def check_same_environment(
    world: World, environment: Mapping[str, Any], say: Callable[[str], None]
) -> None:
    """Raise the same `InputError` on all processes if their environments can give different bits.

    Only reports, through `say`, if their processors are of different models.
    """
    told = {key: environment[key] for key in _TOLD}
    for difference in differences(gathered(world, told)):
        say(
            f"note: {difference}: if these compute different bits, the run's bits depend on which "
            "of them computes what"
        )
    decides = {key: environment[key] for key in environment.keys() - {*_MAY_DIFFER, *_TOLD}}
    # Compare variables one by one, so that the message names just those that differ.
    variables = {name: decides["variables"].get(name, "not set") for name in _VARIABLES}
    decides = {key: decides[key] for key in sorted(decides.keys() - {"variables"})} | variables
    if differing := differences(gathered(world, decides)):
        raise InputError(
            f"the processes of this run compute differently: {'; '.join(differing)}; all of them "
            "need processors with the same instruction sets, the same software and the same "
            "variables, or the run's bits depend on which of them computes what"
        )


def _instruction_sets() -> list[str]:
    """The processor's vendor and its instruction sets of `_KINDS`; empty if unknown."""
    found: set[str] = set()
    for line in cpu_facts().partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            found.update(name for name in value.split() if name.startswith(_KINDS))
        elif key.strip() in ("vendor_id", "CPU implementer"):
            found.add(value.strip())
    return sorted(found)


def record_environment(path: Path, environment: dict[str, Any], step: int) -> list[str]:
    """Append `environment` to the run's list if it differs from the last; returns what differs.

    Keys that an earlier version did not record do not count as different. Raises `InputError` if
    the list is damaged.
    """
    stretches = _stretches(path)
    before = _filled_up(stretches[-1]) if stretches else {}
    differing = [
        f"{key}: {before.get(key)} before, {value} now"
        for key, value in environment.items()
        if key in before and before[key] != value
    ]
    if not stretches or differing:
        stretches.append({"from_step": step, **environment})
        write_atomically(path, (json.dumps(stretches, indent=1) + "\n").encode())
    return differing


def environment_differences(run_a: Path, run_b: Path, step: int) -> list[str]:
    """Differences between the environments in which two runs computed `step`.

    Each as `torch is 1 and 2`. Empty if a run did not record its environment or its list is
    damaged.
    """
    try:
        a, b = (_in_force(_stretches(run / "environment.json"), step) for run in (run_a, run_b))
    except (InputError, OSError):
        return []
    told = []
    for key in [key for key in a if key in b and a[key] != b[key]]:
        pair = a[key], b[key]
        if all(isinstance(value, dict) for value in pair):  # variables, by name
            told += [
                f"{name} is {' and '.join(str(value.get(name, 'not set')) for value in pair)}"
                for name in sorted({*pair[0], *pair[1]})
                if pair[0].get(name) != pair[1].get(name)
            ]
        elif all(isinstance(value, list) for value in pair):  # long lists that mostly agree
            rest = [[str(one) for one in x if one not in y] for x, y in (pair, pair[::-1])]
            told += [
                f"{key} has {', '.join(more)} in {run} alone"
                for run, more in zip((run_a, run_b), rest, strict=True)
                if more
            ]
        else:
            told.append(f"{key} is {pair[0]} and {pair[1]}")
    return told


def _stretches(path: Path) -> list[dict[str, Any]]:
    """The run's list, empty if there is no file; raises `InputError` if it is damaged."""
    try:
        stretches = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        if not isinstance(stretches, list) or not all(isinstance(each, dict) for each in stretches):
            raise ValueError("no list of environments")
    except ValueError:
        raise InputError(f"{path} is damaged: put it back, or remove it to record anew") from None
    return stretches


def _in_force(stretches: list[dict[str, Any]], step: int) -> dict[str, Any]:
    """The environment in which `step` was computed; empty if unknown."""
    begun = [
        each
        for each in stretches
        if isinstance(each.get("from_step"), int) and each["from_step"] <= step
    ]
    if not begun:
        return {}
    return {key: value for key, value in _filled_up(begun[-1]).items() if key != "from_step"}


def _filled_up(stretch: dict[str, Any]) -> dict[str, Any]:
    """`stretch` with the values that held in versions which did not record them."""
    return {"tile_code": False, **stretch} if stretch else {}
