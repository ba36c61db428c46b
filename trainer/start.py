"""What a run may begin from (`train.init_from`): another run's checkpoint, or finished weights."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from puicl_config import InputError, ModelConfig, from_home, load_config
from puicl_model import find_weights, load_model, shipped_weights
from trainer.checkpoint import CheckpointState, Lineage, load_checkpoint, read_state

# Keys that a card needs so that a run which begins from its weights can record their origin.
_ORIGIN = ("steps", "run_digest", "plan_digest", "data", "lineage")


def is_there(init_from: str) -> bool:
    """Whether `init_from` is an existing path or the name of shipped weights."""
    return from_home(init_from).exists() or init_from in shipped_weights()


def start_digest(init_from: str) -> str:
    """Digest of the tensors at `init_from`, as in the lineage of a run that began from them.

    Raises `InputError` if there is neither a checkpoint nor weights, or they are damaged.
    """
    weights = _weights_file(init_from)
    return read_state(from_home(init_from)).tensors_digest if weights is None else _read(weights)[0]


def load_start(init_from: str) -> tuple[CheckpointState, dict[str, Tensor]]:
    """State and tensors from which a run with this `init_from` begins.

    A checkpoint gives all its tensors. Weights (a `model.safetensors`, an export, a mean written by
    `puicl average`, or the name of shipped weights, over which a path of that name takes
    precedence) also serve as their own moving average and come without optimizer moments. Raises
    `InputError` if there is neither, if it is damaged, or if the card does not say where the
    weights come from.
    """
    weights = _weights_file(init_from)
    if weights is None:
        return load_checkpoint(from_home(init_from))
    digest, card, tensors = _read(weights)
    lacks = [key for key in _ORIGIN if key not in card]
    if lacks:
        older = (
            ", which `puicl average` did not write before: average the checkpoints again"
            if "average_of" in card
            else ""
        )
        raise InputError(
            f"{weights.with_suffix('.json')} does not say where the weights come from: it lacks "
            f"{', '.join(lacks)}{older}"
        )
    about = CheckpointState(
        step=card["steps"],
        run_digest=card["run_digest"],
        plan_digest=card["plan_digest"],
        data=card["data"],
        tensors_digest=digest,
        lineage=Lineage(tuple(card["lineage"])),
    )
    kinds = ("model", "ema")
    return about, {f"{kind}.{name}": t for kind in kinds for name, t in tensors.items()}


def reads_otherwise(init_from: str, model: ModelConfig) -> str:
    """Settings in which `model` differs from the network that trained `init_from`; "" if none.

    For networks whose parameters have the same shapes, but which may differ in heads, groups of
    columns or scales. Also "" if those settings are unknown: for a checkpoint outside its run's
    folder, or a config of a version with other keys.
    """
    return ", ".join(
        f"model.{name} {ours} (there {theirs})"
        for name, (theirs, ours) in _differing(init_from, model).items()
    )


def settings_of_start(init_from: str, model: ModelConfig) -> str:
    """The overrides that make `model` the network that trained `init_from`, as a command has them.

    "" where `reads_otherwise` is "".
    """
    values = {
        name: theirs if isinstance(theirs, str) else json.dumps(theirs, separators=(",", ":"))
        for name, (theirs, _) in _differing(init_from, model).items()
    }
    return " ".join(shlex.quote(f"model.{name}={value}") for name, value in values.items())


def _differing(init_from: str, model: ModelConfig) -> dict[str, tuple[Any, Any]]:
    """Each setting in which the network that trained `init_from` differs: its value, and ours."""
    weights = _weights_file(init_from)
    if weights is not None:
        theirs = load_model(weights)[0].config
    else:
        recorded = from_home(init_from).resolve().parent.parent / "config.yaml"
        if not recorded.is_file():
            return {}
        try:
            theirs = load_config(recorded).model
        except InputError:  # written by a version that had other keys
            return {}
    there, here = _resolved(theirs), _resolved(model)
    return {name: (there[name], here[name]) for name in here if here[name] != there[name]}


def _resolved(model: ModelConfig) -> dict[str, Any]:
    """All of the model's settings, with head counts that default to `heads` filled in."""
    # Not `model_dump`, which leaves out newer keys at their defaults.
    values = {name: getattr(model, name) for name in type(model).model_fields}
    for name in ("feature_heads", "row_heads"):
        values[name] = values[name] or values["heads"]
    return {name: value for name, value in values.items() if name != "heads"}


def _weights_file(init_from: str) -> Path | None:
    """The safetensors file that `init_from` is or names; None for a folder or any other path.

    Raises `InputError` for a bare name that is neither an existing path nor shipped weights.
    """
    path = from_home(init_from)
    if path.is_dir():
        return None
    if path.suffix == ".safetensors":
        return path
    if path.suffix == ".json" and path.with_suffix(".safetensors").is_file():
        return path.with_suffix(".safetensors")  # their card
    if init_from in shipped_weights():
        return find_weights(init_from)
    if path.name == init_from and not path.exists():
        there = ", ".join(shipped_weights()) or "none"
        raise InputError(
            f"train.init_from: there is no checkpoint {init_from}, and the weights that ship are "
            f"{there}"
        )
    return None


def _read(weights: Path) -> tuple[str, Mapping[str, Any], Mapping[str, Tensor]]:
    model, card = load_model(weights)
    return card["weights_digest"], card, model.state_dict()
