"""Write weights with a card of their provenance, so that anyone can replay the first steps."""

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from puicl_config import Config, InputError, load_config
from puicl_model import load_model, save_model
from shard_io import ShardError, ShardReader
from trainer.data import DataChain, check_plan, open_for
from trainer.ledger import read_ledger
from trainer.sampler import stages_of_steps
from trainer.start import load_start

# How many of a run's first steps a card records, to be replayed.
_RECORDED_STEPS = 3


def export_weights(
    run: Path,
    shards: str | Path,
    out: Path,
    *,
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
    the content digests of the parts in the stages that the first three steps read (all steps if the
    run has fewer), and the ledger of those steps. Entries of an existing card of `out` that the run
    does not provide (an interval) are dropped, as they belonged to other weights. With
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
    steps = min(_RECORDED_STEPS, card["steps"])
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
