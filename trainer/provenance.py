"""Provenance of weights, recorded in their card so that anyone can replay the first steps."""

import contextlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from puicl_config import (
    Config,
    InputError,
    load_config,
    parse_config,
    plan_digest,
    run_digest,
)
from puicl_model import load_model, save_model
from shard_io import ShardError, ShardReader, open_shards
from trainer.data import DataChain, check_plan, open_for
from trainer.fit import fit
from trainer.ledger import read_ledger
from trainer.sampler import stages_of_steps
from trainer.start import is_there, load_start, start_digest
from trainer.world import World, choose_algorithms

RECORDED_STEPS = 3
# Relative tolerances for runs that are not reproducible to the bit (`gave_bits_up`), replayed on
# any device. Between an H200 and a CPU, three steps of `gpu_deep_again` differed by at most .0003
# and .004.
REPLAY_TOLERANCE = {"loss": 0.002, "gradient_norm": 0.02}


def export_weights(
    run: Path,
    shards: str | Path,
    out: Path,
    steps: int = RECORDED_STEPS,
    start_share: float = 0.0,
    back_to: str | None = None,
    bfloat16: bool = False,
    unfinished: bool = False,
) -> None:
    """Write the run's final weights to `out` (NAME.safetensors) with a card that can be checked.

    With a `start_share` above 0, the weights are interpolated linearly between the moving averages
    at the run's end and at its start (`train.init_from`), with that share of the latter. What
    training on other tasks lost may return faster than what it gained is lost (Wortsman et al.,
    Robust fine-tuning of zero-shot models, CVPR 2022). `back_to` names an earlier ancestor (weights
    or a checkpoint) to use in place of the run's own start. The card records both. With `bfloat16`
    the weights are rounded to that type, for a file of half the size.

    The card adds to the trainer's own the whole config, the environments, the seconds of training,
    the content digests of the parts in the stages that the first `steps` steps read (all steps if
    the run has fewer), and the ledger of those steps. Entries of an existing card of `out` that the
    run does not provide (an interval) are dropped, as they belonged to other weights. With
    `unfinished`, a run that was stopped for good is exported as it stands.

    Raises `InputError` if the run is unfinished otherwise, if its folder is incomplete, if the
    checkpoint at its start is not the one it began from, if `back_to` is none of its ancestors or
    comes without a `start_share`, or if `shards` are not those it was trained on.
    """
    if back_to and not start_share:
        raise InputError(f"back_to={back_to} needs a start_share above 0, the share of its weights")
    model, card = load_model(run / "model.safetensors")
    if "average_of" in card:
        raise InputError(
            f"{run}/model.safetensors is a mean of checkpoints (`puicl average`), not what the run "
            "ended with: start the trainer again, which writes that, and average to another file"
        )
    if card["steps"] < card["of_steps"] and not unfinished:
        raise InputError(
            f"{run} stands at step {card['steps']} of {card['of_steps']}; finish the run first, or "
            "say that it is to be taken unfinished"
        )
    if card["steps"] < card["of_steps"]:
        card["unfinished"] = True
    if not (run / "config.yaml").is_file():
        raise InputError(f"{run} lacks config.yaml: give the run's folder as the trainer left it")
    config = load_config(run / "config.yaml")
    if bool(card["lineage"]) != bool(config.train.init_from):
        raise InputError(
            f"{run}/config.yaml has train.init_from={config.train.init_from}, which its weights' "
            f"lineage of {len(card['lineage'])} contradicts: put the config back that it began with"
        )
    steps = min(steps, card["steps"])
    ledger = list(islice(read_ledger(run / "ledger.jsonl"), steps))
    if [line["step"] for line in ledger] != list(range(steps)):
        raise InputError(f"{run}/ledger.jsonl lacks some of the first {steps} steps")
    reader = open_for(config, shards)
    _check_data(config, reader, ledger)
    # The folder decides how parts are cut and stored; the trainer's config need not agree.
    config = config.model_copy(update={"shards": reader.manifest.storage})
    stages = stages_of_steps(config.prior, config.train, 0, steps)
    parts = [part for stage in stages for part in reader.parts_of_stage(stage)]
    card |= {
        "config": config.model_dump(mode="json"),
        **_circumstances(run),
        "recorded": {
            "init_from": config.train.init_from,
            "ledger": ledger,
            "parts": {part.name: reader.entry(part).content_digest for part in parts},
        },
    }
    weights = model.state_dict()
    if start_share:
        digest, start = _ancestor(back_to or config.train.init_from, card["lineage"], bool(back_to))
        weights = {
            name: start_share * start[name].double() + (1 - start_share) * end.double()
            for name, end in weights.items()
        }
        weights = {name: weight.float() for name, weight in weights.items()}
        card["start_share"] = start_share
        if back_to:
            card["back_to"] = digest
    if bfloat16:
        weights = {name: weight.bfloat16() for name, weight in weights.items()}
    save_model(out, weights, card)


def _circumstances(run: Path) -> dict[str, Any]:
    """The run's environments and seconds of training, for the card.

    Raises `InputError` if its files do not hold them.
    """
    try:
        environments = json.loads((run / "environment.json").read_text(encoding="utf-8"))
        *_, last = read_ledger(run / "metrics.jsonl")
        return {"environments": environments, "training_seconds": round(last["seconds"])}
    except InputError:  # names the damaged line
        raise
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{run} lacks environment.json or metrics.jsonl as the trainer wrote them, which the "
            f"card is to hold: {error}"
        ) from None


def _check_data(config: Config, reader: ShardReader, ledger: Sequence[Mapping[str, Any]]) -> None:
    """Raise `InputError` unless `reader` holds the data that the ledger's steps (from 0) read."""
    try:
        check_plan(config, reader)
        chain = DataChain(config, reader)
        same = all(chain.consume(line["step"]).startswith(line["data"]) for line in ledger)
    except ShardError as error:
        raise InputError(f"these are not the shards the run was trained on: {error}") from None
    if not same:
        raise InputError(
            f"{reader.folder} holds other shards of this plan than those the run was trained on: "
            "their content digests, or what was sliced out of them, differ"
        )


def _ancestor(
    place: str | None, ancestors: Sequence[Mapping[str, Any]], any_of_them: bool
) -> tuple[str, dict[str, torch.Tensor]]:
    """Digest and moving averages of the weights at `place`.

    Raises `InputError` unless these are the last of `ancestors`, from which the run began, or, with
    `any_of_them`, any of `ancestors`.
    """
    if not ancestors:
        raise InputError("the run began from its seed: there is no start to go back to")
    assert place is not None, "a run with ancestors names its start"
    about, tensors = load_start(place)
    digests = [ancestor["tensors_digest"] for ancestor in ancestors]
    if about.tensors_digest not in (digests if any_of_them else digests[-1:]):
        what = "none of the run's ancestors" if any_of_them else "not what the run began from"
        raise InputError(f"{place} is {what}: its digest differs")
    prefix = "ema."
    return about.tensors_digest, {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def recorded_stages(card: Mapping[str, Any]) -> tuple[Config, list[int]]:
    """Config of a card written by `export_weights`, and the stages that its recorded steps read.

    Raises `InputError` if the card records no steps (that of a mean of checkpoints never does), or
    if its config, digests and numbers of steps contradict one another.
    """
    if "average_of" in card:
        mean = card["average_of"]
        raise InputError(
            "the weights' card records no steps, as these are the mean of the checkpoints of steps "
            f"{', '.join(map(str, mean['steps']))}, which no run ended with: to check it, average "
            f"them again (`puicl average CHECKPOINTS --of {mean['weights']} --out FILE`) and "
            "compare weights_digest in the cards"
        )
    if not {"recorded", "config"} <= card.keys():
        raise InputError("the weights' card records no steps: `puicl weights export` writes them")
    config = parse_config(card["config"], where="the weights' card")
    ancestors = card["lineage"]
    parent = ancestors[-1]["tensors_digest"] if ancestors else None
    recorded, total = len(card["recorded"]["ledger"]), config.prior.total_steps
    steps: Any = total
    if card.get("unfinished"):
        stopped = card["steps"] in range(recorded, total)
        steps = card["steps"] if stopped else f"{recorded} to {total - 1}, unfinished"
    for key, stated in {
        "plan_digest": plan_digest(config.prior),
        "run_digest": run_digest(config, parent),
        "of_steps": total,
        "steps": steps,
        "model": config.model.model_dump(mode="json"),
    }.items():
        if card[key] != stated:
            raise InputError(
                f"the weights' card contradicts itself: {key} is {card[key]}, its config says "
                f"{stated}"
            )
    return config, sorted(stages_of_steps(config.prior, config.train, 0, recorded))


def differing_parts(card: Mapping[str, Any], shards: str | Path) -> list[str]:
    """Names of the recorded parts that `shards` lacks or holds with different content."""
    reader = open_shards(shards)
    published = {part.name: part for part in reader.published_parts()}
    return [
        name
        for name, digest in card["recorded"]["parts"].items()
        if name not in published or reader.entry(published[name]).content_digest != digest
    ]


def gave_bits_up(config: Config) -> bool:
    """Whether a run used algorithms on a GPU whose results are not the same to the bit."""
    return config.train.device == "cuda" and not config.train.deterministic


def check_start(card: Mapping[str, Any], init_from: str | None) -> None:
    """Raise `InputError` unless a replay from `init_from` begins where the recorded run did."""
    parent = card["lineage"][-1]["tensors_digest"] if card["lineage"] else None
    if card["recorded"]["init_from"] and not init_from:
        raise InputError(f"the run began at {card['recorded']['init_from']}: say where that is")
    if init_from and not is_there(init_from):
        raise InputError(
            f"{init_from}, at which the run began, is not here: do this in a checkout that holds "
            "it, or say with --checkpoint where it lies"
        )
    if init_from and start_digest(init_from) != parent:
        raise InputError(f"{init_from} is not what the run began from: its digest differs")


def replay(
    card: Mapping[str, Any], shards: str | Path, out: Path, init_from: str | None
) -> str | None:
    """Train the recorded steps again in `out`; returns a sentence on the first difference, or None.

    `init_from` is where the run began (`train.init_from`), None if it began from its seed. The
    replay uses one process with the recorded number of threads, as the number of processes changes
    no bit. For a run that is not reproducible to the bit (`gave_bits_up`), losses and gradient
    norms have to agree within `REPLAY_TOLERANCE` and the data to the bit; weights are not compared.
    Raises `InputError` if the card has no usable record (`recorded_stages`), if `init_from` is not
    what the run began from, or if the replay was stopped.
    """
    config, _ = recorded_stages(card)
    check_start(card, init_from)
    recorded: Sequence[dict] = card["recorded"]["ledger"]
    changes: dict[str, Any] = {
        "init_from": init_from,
        "max_steps": len(recorded),
        "max_seconds": None,
        "follow": False,
        "digest_every": 1,
        "loader_processes": 0,  # else a calling script would have to guard its main module
        "heldout": None,
    }
    if config.train.device == "cuda" and not torch.cuda.is_available():
        changes["device"] = "cpu"  # other bits, which the result then reports or tolerates
    if card.get("where"):
        changes["where"] = card["where"]  # selects the same tasks if the run read a slice
    train = config.train.model_copy(update=changes)
    torch.set_num_threads(train.threads_per_process)
    choose_algorithms(train.deterministic)
    with contextlib.redirect_stdout(io.StringIO()):
        world = World(0, 1, torch.device(train.device))
        fit(config.model_copy(update={"train": train}), shards, out, world)
    again = list(read_ledger(out / "ledger.jsonl"))
    if len(again) < len(recorded):
        raise InputError(f"stopped after {len(again)} of {len(recorded)} steps: start it again")
    loose = gave_bits_up(config)
    for then, now in zip(recorded, again, strict=True):
        # Only some lines hold a digest of the weights (train.digest_every).
        shared = [key for key in then if key in now and not (loose and key == "weights")]
        odd = [key for key in shared if not _agree(key, then[key], now[key], loose)]
        if odd:
            difference = _difference(odd[0], then[odd[0]], now[odd[0]])
            return f"step {then['step']}: {difference} ({_other_environment(card, out)})"
    return None


def _agree(key: str, then: Any, now: Any, loose: bool) -> bool:
    """Whether two entries of a ledger agree; if `loose`, losses and norms within a tolerance."""
    if loose and key in ("loss", "gradient_norm"):
        return math.isclose(float.fromhex(then), float.fromhex(now), rel_tol=REPLAY_TOLERANCE[key])
    return then == now


def _difference(key: str, then: Any, now: Any) -> str:
    """Describe a differing entry of the ledger; for losses and norms, with how far it is off."""
    said = f"{key} is {now}, and was {then}"
    was = float.fromhex(then) if key in REPLAY_TOLERANCE else 0.0
    away = float.fromhex(now) / was - 1 if was else math.nan
    if not math.isfinite(away):
        return said
    return f"{said}: {abs(away):.1e} of {was:.4f} {'more' if away > 0 else 'less'}"


def _other_environment(card: Mapping[str, Any], out: Path) -> str:
    """Describe how the recorded run's environment differs from this one."""
    then = card["environments"][0]
    now = json.loads((out / "environment.json").read_text(encoding="utf-8"))[0]
    differing = [
        f"{key} was {value}, here it is {now.get(key)}"
        for key, value in then.items()
        if now.get(key) != value
    ]
    return "; ".join(differing) or "software, processor and commit are the recorded ones"
