"""The mean of several checkpoints of one run: latest weight averaging (LAWA), after training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from puicl_config import Config, InputError, load_config
from puicl_model import save_model
from trainer.checkpoint import CheckpointState, checkpoints, load_checkpoint


def average_checkpoints(sources: Sequence[Path], out: Path, of: str = "model") -> list[int]:
    """Write the mean weights of checkpoints to `out` (NAME.safetensors); returns their steps.

    sources: checkpoint folders, or a run's folder, which stands for all checkpoints it keeps. `of`
    chooses the weights: "model", those trained, or "ema", their moving averages. Means are computed
    in float64. The card has the steps and data of the newest checkpoint, which has read all that
    the others have. Its lineage is the run's, followed by all these checkpoints, so that
    `train.init_from` accepts the mean. Raises `InputError` if checkpoints are damaged, rounded,
    given twice, outside a run's folder or of different runs, and if `out` has another suffix.
    """
    if out.suffix != ".safetensors":
        raise InputError(f"{out}: give a file that ends in .safetensors")
    paths = [path for source in sources for path in _checkpoints_of(source)]
    total: dict[str, torch.Tensor] = {}
    states = []
    for path in paths:
        state, tensors = load_checkpoint(path)
        states.append(state)
        if (state.run_digest, state.where) != (states[0].run_digest, states[0].where):
            raise InputError(f"{paths[0]} and {path} are of different runs")
        if state.is_rounded(tensors):
            raise InputError(f"{path} is rounded to bfloat16: average the run's own checkpoints")
        for name, tensor in tensors.items():
            kind, _, parameter = name.partition(".")
            if kind == of:
                total[parameter] = total.get(parameter, 0) + tensor.double()
    steps = [state.step for state in states]
    if len(set(steps)) < len(steps):
        raise InputError(f"a checkpoint is given twice: steps {', '.join(map(str, steps))}")
    path = paths[0].resolve().parent.parent / "config.yaml"
    if not path.is_file():
        raise InputError(f"{paths[0]} lies in no run's folder: {path} is not there")
    states.sort(key=lambda state: state.step)
    card = _card(load_config(path), of, states)
    mean = {name: (tensor / len(paths)).float() for name, tensor in total.items()}
    save_model(out, mean, card)
    return card["average_of"]["steps"]


def _card(config: Config, of: str, states: Sequence[CheckpointState]) -> dict[str, Any]:
    """The card of the mean of a run's checkpoints; `states` are given oldest first."""
    newest = states[-1]
    ancestors = (*newest.lineage.ancestors, *(state.as_ancestor() for state in states))
    return {
        "name": config.name,
        "model": config.model.model_dump(mode="json"),
        "average_of": {"weights": of, "steps": [state.step for state in states]},
        "steps": newest.step,
        "run_digest": newest.run_digest,
        "lineage": list(ancestors),
        "plan_digest": newest.plan_digest,
        **({"where": newest.where} if newest.where else {}),
        "data": newest.data,
    }


def _checkpoints_of(source: Path) -> list[Path]:
    if (source / "checkpoints").is_dir():
        found = checkpoints(source / "checkpoints")
        if found:
            return found
    elif (source / "state.json").is_file():
        return [source]
    raise InputError(f"{source} is neither a checkpoint nor a run that has one")
