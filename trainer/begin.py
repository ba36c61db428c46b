"""Where a run begins: at its seed, at another run's checkpoint, or at its own newest one."""

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from puicl_config import Config, InputError, plan_digest, run_digest
from trainer.checkpoint import (
    CheckpointState,
    Lineage,
    load_checkpoint,
    newest_whole,
    set_aside,
)
from trainer.data import DataChain
from trainer.state import TrainState
from trainer.world import World


def begin_or_resume(
    config: Config,
    out: Path,
    state: TrainState,
    chain: DataChain,
    world: World,
    say: Callable[[str], None],
) -> Lineage:
    """Bring `state` and `chain` to where the run in `out` stands; returns what it descends from.

    A damaged checkpoint is named, set aside, and the one before it taken. Raises `InputError`
    where none is left, and where run, plan or data consumed are not the config's.
    """
    found, damaged = newest_whole(out / "checkpoints")
    if found is None and damaged:
        raise InputError(f"{damaged[0][1]}; no other is left: remove {out} to begin again")
    for path, error in damaged:
        say(f"{error}; going back to the checkpoint before it")
        if world.is_first:
            set_aside(path)
    if found is None:
        return _begin(state, config.train.init_from)
    _resume(state, chain, *found, config)
    return found[0].lineage


def _begin(state: TrainState, init_from: str | None) -> Lineage:
    """Begin a run: from its seed, or from another run's checkpoint, which is recorded."""
    if init_from is None:
        return Lineage()
    about, tensors = load_checkpoint(Path(init_from))
    state.begin_from(tensors, about.step)
    ancestor = {
        "run_digest": about.run_digest,
        "plan_digest": about.plan_digest,
        "data": about.data,
        "step": about.step,
        "tensors_digest": about.tensors_digest,
    }
    return Lineage((*about.lineage.ancestors, ancestor))


def _resume(
    state: TrainState,
    chain: DataChain,
    about: CheckpointState,
    tensors: dict[str, Tensor],
    config: Config,
) -> None:
    """Restore a checkpoint after checking that run, plan and data consumed are the same."""
    ours = run_digest(config, about.lineage.parent)
    if about.plan_digest != plan_digest(config.prior) or about.run_digest != ours:
        raise InputError(
            "the checkpoint belongs to another run: its run or plan digest differs from the "
            "config's; give another --out"
        )
    for step in range(about.step):
        chain.consume(step)
    if chain.value != about.data:
        raise InputError(
            f"the parts that {chain.folder} holds for steps 0-{about.step - 1} are not those the "
            "checkpoint was trained on: their content digests differ"
        )
    state.restore(tensors, about.step)
