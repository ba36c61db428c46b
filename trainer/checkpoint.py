"""`checkpoints/step-00012000/`: tensors and state, whole or absent."""

import contextlib
import json
import re
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from puicl_config import InputError
from puicl_config.atomic import sync_folder, write_synced
from puicl_model import weights_digest

_NAME = re.compile(r"step-(\d{8})")
TENSORS, STATE = "state.safetensors", "state.json"


@dataclass(frozen=True)
class Lineage:
    """The checkpoints, oldest first, that led to where a run began (`train.init_from`)."""

    ancestors: tuple[dict, ...] = ()

    @property
    def parent(self) -> str | None:
        """Digest of the tensors the run began from; None where it began from its seed."""
        return self.ancestors[-1]["tensors_digest"] if self.ancestors else None


@dataclass(frozen=True)
class CheckpointState:
    """What a checkpoint says of itself: which run, which data, how far."""

    step: int
    run_digest: str
    plan_digest: str
    data: str
    tensors_digest: str = ""
    lineage: Lineage = Lineage()
    where: str | None = None  # of a slice, or `train.where`
    rounded_from: str | None = None  # `tensors_digest` of what `trainer.compact` rounded

    def as_ancestor(self) -> dict[str, str | int]:
        """What the lineage of all that comes from this checkpoint's tensors says of it."""
        return {
            "run_digest": self.run_digest,
            "plan_digest": self.plan_digest,
            "data": self.data,
            "step": self.step,
            "tensors_digest": self.tensors_digest,
        }

    def is_rounded(self, tensors: dict[str, Tensor]) -> bool:
        """Whether `tensors`, this checkpoint's, are a run's own rounded to bfloat16.

        The first ones of `trainer.compact` do not say so: a run's own are float32.
        """
        if self.rounded_from is not None:
            return True
        return all(tensor.dtype == torch.bfloat16 for tensor in tensors.values())


def save_checkpoint(folder: Path, state: CheckpointState, tensors: dict[str, Tensor]) -> Path:
    """Write `folder/step-.../` under a temporary name, sync it, then rename it."""
    target = folder / f"step-{state.step:08d}"
    staging = folder / f".{target.name}.tmp"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    # By way of bytes: safetensors' own file could be read by nobody but who wrote it.
    write_synced(staging / TENSORS, save(tensors))
    state = replace(state, tensors_digest=weights_digest(tensors))
    write_synced(staging / STATE, (json.dumps(asdict(state), indent=1) + "\n").encode())
    sync_folder(staging)
    if target.exists():
        shutil.rmtree(target)
    staging.replace(target)
    sync_folder(folder)
    return target


def checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first."""
    found = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(found)


def read_state(path: Path) -> CheckpointState:
    """What a checkpoint says of itself; raises `InputError` where it is none, or damaged."""
    if not path.is_dir():
        raise InputError(f"there is no checkpoint {path}")
    if not (path / STATE).exists() and (path / "checkpoints").is_dir():
        kept = checkpoints(path / "checkpoints")
        example = f", such as {kept[-1]}" if kept else ""
        raise InputError(f"{path} is a run: give one of its checkpoints{example}")
    try:
        fields = json.loads((path / STATE).read_text(encoding="utf-8"))
        lineage = Lineage(tuple(fields.pop("lineage")["ancestors"]))
        return CheckpointState(**fields, lineage=lineage)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"the checkpoint {path} is damaged: {error}") from None


def load_checkpoint(path: Path) -> tuple[CheckpointState, dict[str, Tensor]]:
    """A checkpoint's state and tensors; raises `InputError` where it is none, or damaged."""
    state = read_state(path)
    try:
        tensors = load_file(path / TENSORS)
    except (OSError, SafetensorError) as error:
        raise InputError(f"the checkpoint {path} is damaged: {error}") from None
    if weights_digest(tensors) != state.tensors_digest:
        raise InputError(f"the checkpoint {path} does not match its digest")
    return state, tensors


def newest_whole(
    folder: Path,
) -> tuple[tuple[CheckpointState, dict[str, Tensor]] | None, list[tuple[Path, InputError]]]:
    """The newest checkpoint that is whole, or None; and the newer ones that are not, and why.

    Each leads to the same bits, so going back one costs time alone.
    """
    damaged = []
    for path in reversed(checkpoints(folder)):
        try:
            return load_checkpoint(path), damaged
        except InputError as error:
            damaged.append((path, error))
    return None, damaged


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it is neither taken for one nor thinned as one."""
    target = path.with_name(f"damaged-{path.name}")
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        path.replace(target)


def thin_checkpoints(folder: Path, keep: int) -> None:
    """Keep the newest `keep` checkpoints, and drop what a killed run left half written."""
    for path in checkpoints(folder)[:-keep]:
        # Renamed first: what is half removed is taken for no checkpoint, and goes the next time.
        with contextlib.suppress(OSError):
            path.rename(folder / f".{path.name}.tmp")
    for path in folder.glob(".step-*.tmp"):
        with contextlib.suppress(OSError):
            shutil.rmtree(path)
