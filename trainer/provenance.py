"""Where weights come from, in their card, so that anyone can make the first steps again."""

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
# What rounding may change, on another device too, where a run gave its bits up (`gave_bits_up`).
# Between an H200 and a CPU, three steps of `gpu_deep_again`: .0003 and .004 at most.
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

    With a `start_share` above 0 the weights lie on the straight line between the moving averages
    at the run's start (`train.init_from`) and at its end, that share of the way back: what a
    stretch on other tasks took may return faster than what it gave goes (Wortsman et al., Robust
    fine-tuning of zero-shot models, CVPR 2022). `back_to` names an earlier ancestor (weights or a
    checkpoint) to go back to instead of the run's own start. The card says so.
    With `bfloat16` what is written is rounded to it, for a file of half the size.

    To what the trainer wrote come the whole config, environments, seconds of training, the content
    digests of the stages that the first `steps` steps read (all where the run has fewer), and those
    steps' ledger. What is in the card of `out` already and is no fact of a run (an interval) is not
    kept: it belonged to other weights. A run that was stopped for good is taken as it stands where
    `unfinished`. Raises `InputError` where a run is unfinished otherwise, its folder incomplete,
    the checkpoint at its start not the one it began from, `back_to` none of its ancestors or
    without a `start_share`, or `shards` not those it was trained on.
    """
    if back_to and not start_share:
        raise InputError(f"how far back to {back_to}? start_share says so, and is 0")
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
    # How the parts were cut and stored is the folder's; the trainer's config need not agree.
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
    """Environments and seconds of training, for the card."""
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
    """Raise `InputError` unless `reader` holds what the ledger's steps, from 0 on, have read."""
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
    """Digest and moving averages of what a run began from, or of `any_of_them` before that."""
    if not ancestors:
        raise InputError("the run began from its seed: there is no start to go back to")
    assert place is not None, "a run with ancestors names its start"
    about, tensors = load_start(place)
    digests = [ancestor["tensors_digest"] for ancestor in ancestors]
    if about.tensors_digest not in (digests if any_of_them else digests[-1:]):
        what = "none of the run's ancestors" if any_of_them else "not what the run began from"
        raise InputError(f"{place} is {what}: its digest is another one")
    prefix = "ema."
    return about.tensors_digest, {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def recorded_stages(card: Mapping[str, Any]) -> tuple[Config, list[int]]:
    """The config of a card that `export_weights` wrote, and the stages its record has read.

    Raises `InputError` where the card has no such record, as that of a mean of checkpoints never
    has, or where config, digests and numbers of steps in it contradict one another.
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
    """Names of the recorded parts that `shards` lacks or holds with other content."""
    reader = open_shards(shards)
    published = {part.name: part for part in reader.published_parts()}
    return [
        name
        for name, digest in card["recorded"]["parts"].items()
        if name not in published or reader.entry(published[name]).content_digest != digest
    ]


def gave_bits_up(config: Config) -> bool:
    """Whether a recorded run was on a GPU with algorithms whose bits differ from run to run."""
    return config.train.device == "cuda" and not config.train.deterministic


def check_start(card: Mapping[str, Any], init_from: str | None) -> None:
    """Raise `InputError` where a replay from `init_from` (see `replay`) would not begin there."""
    parent = card["lineage"][-1]["tensors_digest"] if card["lineage"] else None
    if card["recorded"]["init_from"] and not init_from:
        raise InputError(f"the run began at {card['recorded']['init_from']}: say where that lies")
    if init_from and not is_there(init_from):
        raise InputError(
            f"{init_from}, at which the run began, is not here: do this in a checkout that holds "
            "it, or say with --checkpoint where it lies"
        )
    if init_from and start_digest(init_from) != parent:
        raise InputError(f"{init_from} is not what the run began from: its digest is another one")


def replay(
    card: Mapping[str, Any], shards: str | Path, out: Path, init_from: str | None
) -> str | None:
    """Train the recorded steps again in `out`; a sentence on the first difference, None if none.

    `init_from` is where the run began (`train.init_from`), None where it began at its seed. One
    process of as many threads as then: the number of processes changes no bit. Of a run that gave
    its bits up (`gave_bits_up`) losses and sizes of the gradient have to agree to
    `REPLAY_TOLERANCE`, data to the bit, and weights are not compared.
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
        "loader_processes": 0,  # which a script would have to guard its main module for
        "heldout": None,
    }
    if config.train.device == "cuda" and not torch.cuda.is_available():
        changes["device"] = "cpu"  # other bits, as the answer then says, or losses that agree
    if card.get("where"):
        changes["where"] = card["where"]  # the run may have read a slice: here it is cut out again
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
        # A digest of the weights stands in every so many lines only.
        shared = [key for key in then if key in now and not (loose and key == "weights")]
        odd = [key for key in shared if not _agree(key, then[key], now[key], loose)]
        if odd:
            difference = _difference(odd[0], then[odd[0]], now[odd[0]])
            return f"step {then['step']}: {difference} ({_other_environment(card, out)})"
    return None


def _agree(key: str, then: Any, now: Any, loose: bool) -> bool:
    """Whether a ledger's entry is the same, or `loose`ly so where it is a rounded sum."""
    if loose and key in ("loss", "gradient_norm"):
        return math.isclose(float.fromhex(then), float.fromhex(now), rel_tol=REPLAY_TOLERANCE[key])
    return then == now


def _difference(key: str, then: Any, now: Any) -> str:
    """What to say of a ledger's entry that is another one now; of a rounded sum, how far off."""
    said = f"{key} is {now}, and was {then}"
    was = float.fromhex(then) if key in REPLAY_TOLERANCE else 0.0
    away = float.fromhex(now) / was - 1 if was else math.nan
    if not math.isfinite(away):
        return said
    return f"{said}: {abs(away):.1e} of {was:.4f} {'more' if away > 0 else 'less'}"


def _other_environment(card: Mapping[str, Any], out: Path) -> str:
    """What of the recorded run's surroundings is not the same here."""
    then = card["environments"][0]
    now = json.loads((out / "environment.json").read_text(encoding="utf-8"))[0]
    differing = [
        f"{key} was {value}, here it is {now.get(key)}"
        for key, value in then.items()
        if now.get(key) != value
    ]
    return "; ".join(differing) or "software, processor and commit are the recorded ones"
