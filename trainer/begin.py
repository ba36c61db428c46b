"""How a run begins: from its seed, from `train.init_from`, or from its own newest checkpoint."""

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from puicl_config import Config, InputError, plan_digest, run_digest
from shard_io import ShardError
from trainer.checkpoint import (
    CheckpointState,
    Lineage,
    newest_whole,
    set_aside,
)
from trainer.data import DataChain
from trainer.ledger import read_ledger
from trainer.run_folder import check_nothing_lost, recorded_start
from trainer.start import (
    is_there,
    load_start,
    reads_otherwise,
    settings_of_start,
    start_digest,
)
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
    """Bring `state` and `chain` to where the run in `out` stands; returns the run's lineage.

    A damaged checkpoint is reported and set aside, and the one before it used. Raises `InputError`
    if there are checkpoints but none is whole, if a run lost its checkpoints, and if the run, plan,
    start or data consumed are not the config's.
    """
    found, damaged = newest_whole(out / "checkpoints")
    if found is None and damaged:
        raise InputError(
            f"{'; '.join(str(error) for _, error in damaged)}: no checkpoint of {out} is whole; "
            "put one back, or give another --out"
        )
    if found is None:
        check_nothing_lost(out)
    for path, error in damaged:
        say(f"{error}; going back to the checkpoint before it")
        if world.is_first:
            set_aside(path)
    if found is None:
        return _begin(state, config.train.init_from, say)
    _check_start(out, found[0].lineage, config.train.init_from)
    _resume(state, chain, *found, config, out)
    return found[0].lineage


def _check_start(out: Path, lineage: Lineage, init_from: str | None) -> None:
    """Raise `InputError` unless the run in `out` began where `train.init_from` says.

    The digests of the tensors are compared. Weights that no longer exist are accepted if their
    path is the one in the run's config.yaml.
    """
    recorded = recorded_start(out)
    if init_from is None and lineage.parent is None:
        return
    if init_from is None:
        raise InputError(
            f"{out} holds a run that began at {recorded or lineage.parent}: say so "
            f"again (train.init_from={recorded or '...'}), or give another --out"
        )
    if lineage.parent is None:
        raise InputError(
            f"{out} holds a run that began from its seed, not from train.init_from={init_from}; "
            "give another --out"
        )
    if not is_there(init_from) and init_from == recorded:
        return
    if start_digest(init_from) != lineage.parent:
        raise InputError(
            f"{out} holds a run that did not begin at train.init_from={init_from}; give another "
            "--out"
        )


def _begin(state: TrainState, init_from: str | None, say: Callable[[str], None]) -> Lineage:
    """Begin a run from its seed, or from another run's weights; returns its lineage."""
    if init_from is None:
        return Lineage()
    about, tensors = load_start(init_from)
    try:
        state.begin_from(tensors, about.step)
    except InputError as error:
        if settings := settings_of_start(init_from, state.model.config):
            raise InputError(f"{error}: {settings}") from None
        raise
    if otherwise := reads_otherwise(init_from, state.model.config):
        say(f"note: this network reads the weights at {init_from} differently: {otherwise}")
    return Lineage((*about.lineage.ancestors, about.as_ancestor()))


def _resume(
    state: TrainState,
    chain: DataChain,
    about: CheckpointState,
    tensors: dict[str, Tensor],
    config: Config,
    out: Path,
) -> None:
    """Restore a checkpoint.

    Raises `InputError` unless run, plan and data consumed are the same.
    """
    if about.is_rounded(tensors):
        raise InputError(
            f"the checkpoint of step {about.step} is rounded to bfloat16 (trainer.compact), so the "
            "run would not end with the bits it would have had; begin another run with "
            "train.init_from, or put the run's own checkpoint there"
        )
    for what, theirs, ours in (
        ("plan", about.plan_digest, plan_digest(config.prior)),
        ("run", about.run_digest, run_digest(config, about.lineage.parent)),
    ):
        if theirs != ours:
            raise InputError(
                f"the checkpoint belongs to another run: its {what} digest is {theirs[:12]}, the "
                f"config's is {ours[:12]}; give another --out (if {out / 'config.yaml'} is the "
                "run's own, the code has changed: configs have other keys, or a number in "
                "puicl_config/digests.py was raised)"
            )
    values = []
    try:
        for step in range(about.step):
            values.append(chain.consume(step))
    except ShardError as error:
        raise InputError(
            f"{error}, which steps 0-{about.step - 1} have read: to check that a run goes on with "
            "the same data, the files in entries/ are needed to its end (those in parts/ are not, "
            "once read, except with train.where, which counts their tasks again)"
        ) from None
    if chain.value != about.data:
        where = ""
        for line in read_ledger(out / "ledger.jsonl"):
            step = line["step"]
            if step < about.step and line.get("data") != values[step][:16]:
                where = f", first at step {step}, which reads {', '.join(chain.parts_of(step))}"
                break
        raise InputError(
            f"the parts that {chain.folder} holds for steps 0-{about.step - 1} are not those the "
            f"checkpoint was trained on: their content digests differ{where}"
        )
    state.restore(tensors, about.step)
