"""Checkpoints, `checkpoints/step-00012000/`: tensors and state, whole or absent."""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from puicl_config import InputError, sha256_of
from puicl_config.atomic import sync_folder, write_synced
from puicl_model import weights_digest

_NAME = re.compile(r"step-(\d{8})")
TENSORS, STATE = "state.safetensors", "state.json"
_STATE_DIGEST = "state_digest"
# Errors of the system which mean that a file is missing; others may be temporary.
_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class DamagedCheckpoint(InputError):
    """Raised if a checkpoint's files are missing, truncated, altered or unusable."""


@dataclass(frozen=True)
class Lineage:
    """The chain of checkpoints, oldest first, from which a run began (`train.init_from`)."""

    ancestors: tuple[dict, ...] = ()

    @property
    def parent(self) -> str | None:
        """Digest of the tensors the run began from; None if it began from its seed."""
        return self.ancestors[-1]["tensors_digest"] if self.ancestors else None


@dataclass(frozen=True)
class CheckpointState:
    """A checkpoint's description of itself: its run, its data and its step."""

    step: int
    run_digest: str
    plan_digest: str
    data: str
    tensors_digest: str = ""
    lineage: Lineage = Lineage()
    where: str | None = None  # selection of tasks: of a slice, of `train.where`, or of both
    rounded_from: str | None = None  # `tensors_digest` before `trainer.compact` rounded

    def as_ancestor(self) -> dict[str, str | int]:
        """This checkpoint's entry in the lineage of runs that descend from it."""
        return {
            "run_digest": self.run_digest,
            "plan_digest": self.plan_digest,
            "data": self.data,
            "step": self.step,
            "tensors_digest": self.tensors_digest,
        }

    def is_rounded(self, tensors: dict[str, Tensor]) -> bool:
        """Whether this checkpoint's `tensors` were rounded to bfloat16 by `trainer.compact`.

        Its first version did not record `rounded_from`, so the dtype is checked, too: a run writes
        float32.
        """
        if self.rounded_from is not None:
            return True
        return all(tensor.dtype == torch.bfloat16 for tensor in tensors.values())


def save_checkpoint(folder: Path, state: CheckpointState, tensors: dict[str, Tensor]) -> Path:
    """Write `folder/step-.../` under a temporary name, sync it, rename it; returns its path.

    On an `OSError` the temporary folder is removed, since a full disk would otherwise stay full.
    """
    target = folder / f"step-{state.step:08d}"
    staging = folder / f".{target.name}.tmp"
    shutil.rmtree(staging, ignore_errors=True)
    try:
        return _saved(target, staging, state, tensors)
    except OSError:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def _saved(target: Path, staging: Path, state: CheckpointState, tensors: dict[str, Tensor]) -> Path:
    staging.mkdir(parents=True)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    # Not `save_file`, whose files only their owner can read.
    write_synced(staging / TENSORS, save(tensors))
    state = replace(state, tensors_digest=weights_digest(tensors))
    about = asdict(state)
    about[_STATE_DIGEST] = sha256_of(about)
    write_synced(staging / STATE, (json.dumps(about, indent=1) + "\n").encode())
    sync_folder(staging)
    if target.exists():
        shutil.rmtree(target)
    staging.replace(target)
    sync_folder(target.parent)
    return target


def checkpoints(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first."""
    found = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(found)


def read_state(path: Path) -> CheckpointState:
    """The state of the checkpoint in the folder `path`.

    Raises `InputError` if `path` is no checkpoint, cannot be read or was written by a newer
    version, and `DamagedCheckpoint` if it is missing, damaged or of another step than its name
    says.
    """
    if not path.is_dir():  # perhaps another process has just set it aside
        raise DamagedCheckpoint(f"there is no checkpoint {path}")
    if not (path / STATE).exists() and (path / "checkpoints").is_dir():
        kept = checkpoints(path / "checkpoints")
        example = f", such as {kept[-1]}" if kept else ""
        raise InputError(f"{path} is a run: give one of its checkpoints{example}")
    if not (_NAME.fullmatch(path.name) or (path / STATE).exists() or (path / TENSORS).exists()):
        raise InputError(
            f"{path} is no checkpoint: it holds no {STATE}; give a run's, such as "
            "RUN/checkpoints/step-00012000"
        )
    try:
        with _refusals_told(path):
            about = json.loads((path / STATE).read_text(encoding="utf-8"))
        # Checkpoints written before 2026-11-28 have no digest.
        digest = about.pop(_STATE_DIGEST, None)
        if digest not in (None, sha256_of(about)):
            raise DamagedCheckpoint(f"the checkpoint {path} does not match its digest: {STATE}")
        unknown = about.keys() - {field.name for field in fields(CheckpointState)}
        if digest and unknown:
            raise InputError(
                f"the checkpoint {path} is of a newer version of puicl: it has "
                f"{', '.join(sorted(unknown))}"
            )
        lineage = Lineage(tuple(about.pop("lineage")["ancestors"]))
        state = CheckpointState(**about, lineage=lineage)
    except InputError:  # is a ValueError: keep it from the clause below
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedCheckpoint(f"the checkpoint {path} is damaged: {error}") from None
    named = _NAME.fullmatch(path.name)
    if named and int(named[1]) != state.step:
        raise DamagedCheckpoint(f"the checkpoint {path} is of step {state.step}")
    return state


def load_checkpoint(path: Path) -> tuple[CheckpointState, dict[str, Tensor]]:
    """A checkpoint's state and tensors; raises as `read_state` does."""
    state = read_state(path)
    try:
        with _refusals_told(path):
            tensors = load_file(path / TENSORS)
    except SafetensorError as error:
        raise DamagedCheckpoint(f"the checkpoint {path} is damaged: {error}") from None
    if weights_digest(tensors) != state.tensors_digest:
        raise DamagedCheckpoint(f"the checkpoint {path} does not match its digest")
    for name, tensor in tensors.items():  # older versions could save non-finite tensors
        if not tensor.isfinite().all():
            raise DamagedCheckpoint(f"the checkpoint {path} is of no use: {name} is not finite")
    return state, tensors


@contextlib.contextmanager
def _refusals_told(path: Path) -> Iterator[None]:
    """Report missing files as damage, and other system errors as an unreadable checkpoint."""
    try:
        yield
    except _ABSENT as error:
        raise DamagedCheckpoint(f"the checkpoint {path} is damaged: {error}") from None
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise InputError(
            f"the checkpoint {path} cannot be read: {reason}; it may be whole, and nothing was "
            "changed: the same command goes on once it can be"
        ) from None


def newest_whole(
    folder: Path,
) -> tuple[tuple[CheckpointState, dict[str, Tensor]] | None, list[tuple[Path, InputError]]]:
    """The newest undamaged checkpoint, or None; and the newer, damaged ones with their errors.

    Resuming from any checkpoint leads to the same bits, so an older one only costs time. Raises
    `InputError` if one cannot be read, or not by this version.
    """
    damaged: list[tuple[Path, InputError]] = []
    for path in reversed(checkpoints(folder)):
        try:
            return load_checkpoint(path), damaged
        except DamagedCheckpoint as error:
            damaged.append((path, error))
    return None, damaged


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it is neither loaded nor counted by thinning."""
    target = path.with_name(f"damaged-{path.name}")
    shutil.rmtree(target, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        path.replace(target)


def thin_checkpoints(folder: Path, keep: int) -> None:
    """Keep the newest `keep` checkpoints, and remove temporary folders that a killed run left."""
    for path in checkpoints(folder)[:-keep]:
        # Rename first, so that a half-removed folder is no checkpoint and is removed next time.
        with contextlib.suppress(OSError):
            path.rename(folder / f".{path.name}.tmp")
    for path in folder.glob(".step-*.tmp"):
        with contextlib.suppress(OSError):
            shutil.rmtree(path)
