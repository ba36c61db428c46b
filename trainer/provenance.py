"""Where weights come from, in their card, so that anyone can make the first steps again."""

import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from puicl_config import Config, InputError, load_config, parse_config
from puicl_model import load_model, save_model
from shard_io import open_shards
from trainer.checkpoint import load_checkpoint
from trainer.fit import fit
from trainer.ledger import read_ledger
from trainer.sampler import stages_of_steps
from trainer.world import World, choose_algorithms

RECORDED_STEPS = 3


def export_weights(
    run: Path,
    shards: str | Path,
    out: Path,
    steps: int = RECORDED_STEPS,
    start_share: float = 0.0,
) -> None:
    """Write the run's final weights to `out` (NAME.safetensors) with a card that can be checked.

    With a `start_share` above 0 the weights lie on the straight line between the moving averages
    at the run's start (`train.init_from`) and at its end, that share of the way back: what a
    stretch on other tasks took may return faster than what it gave goes (Wortsman et al., Robust
    fine-tuning of zero-shot models, CVPR 2022). The card says so.

    To what the trainer wrote come the whole config, environments, seconds of training, the content
    digests of the stages that the first `steps` steps read, and those steps' ledger. What is in
    the card of `out` already and is no fact of a run (an interval) is not kept: it belonged to
    other weights. Raises `InputError` where the run is unfinished, its folder incomplete, or the
    checkpoint at its start not the one it began from.
    """
    model, card = load_model(run / "model.safetensors")
    if card["steps"] < card["of_steps"]:
        raise InputError(
            f"{run} stands at step {card['steps']} of {card['of_steps']}; finish the run first"
        )
    config = load_config(run / "config.yaml")
    ledger = list(read_ledger(run / "ledger.jsonl"))[:steps]
    if len(ledger) < steps:
        raise InputError(f"{run}/ledger.jsonl holds fewer than {steps} steps")
    reader = open_shards(shards)
    stages = stages_of_steps(config.prior, config.train, 0, steps)
    parts = [part for stage in stages for part in reader.parts_of_stage(stage)]
    card |= {
        "config": config.model_dump(mode="json"),
        "environments": json.loads((run / "environment.json").read_text(encoding="utf-8")),
        "training_seconds": round([*read_ledger(run / "metrics.jsonl")][-1]["seconds"]),
        "recorded": {
            "init_from": config.train.init_from,
            "ledger": ledger,
            "parts": {part.name: reader.entry(part).content_digest for part in parts},
        },
    }
    weights = model.state_dict()
    if start_share:
        start = _weights_at_start(config.train.init_from, card["lineage"])
        weights = {
            name: start_share * start[name].double() + (1 - start_share) * end.double()
            for name, end in weights.items()
        }
        weights = {name: weight.float() for name, weight in weights.items()}
        card["start_share"] = start_share
    save_model(out, weights, card)


def _weights_at_start(
    init_from: str | None, ancestors: Sequence[Mapping[str, Any]]
) -> dict[str, torch.Tensor]:
    """The moving averages in the checkpoint that a run began from."""
    if init_from is None:
        raise InputError("the run began from its seed: there is no start to go back to")
    about, tensors = load_checkpoint(Path(init_from))
    if about.tensors_digest != ancestors[-1]["tensors_digest"]:
        raise InputError(f"{init_from} is not the checkpoint that the run began from")
    prefix = "ema."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def recorded_stages(card: Mapping[str, Any]) -> tuple[Config, list[int]]:
    """The config of a card that `export_weights` wrote, and the stages its record has read."""
    if "recorded" not in card:
        raise InputError("the weights' card records no steps: `puicl weights export` writes them")
    config = parse_config(card["config"], where="the weights' card")
    steps = len(card["recorded"]["ledger"])
    return config, sorted(stages_of_steps(config.prior, config.train, 0, steps))


def differing_parts(card: Mapping[str, Any], shards: str | Path) -> list[str]:
    """Names of the recorded parts that `shards` lacks or holds with other content."""
    reader = open_shards(shards)
    published = {part.name: part for part in reader.published_parts()}
    return [
        name
        for name, digest in card["recorded"]["parts"].items()
        if name not in published or reader.entry(published[name]).content_digest != digest
    ]


def replay(
    card: Mapping[str, Any], shards: str | Path, out: Path, init_from: str | None
) -> str | None:
    """Train the recorded steps again in `out`; a sentence on the first difference, None if none.

    `init_from` is the checkpoint the run began at, None where it began at its seed. One process
    of as many threads as then: the number of processes changes no bit.
    """
    config, _ = recorded_stages(card)
    if card["recorded"]["init_from"] and not init_from:
        raise InputError(
            f"the run began at the checkpoint {card['recorded']['init_from']}: say where it lies"
        )
    if init_from and not Path(init_from).is_dir():
        raise InputError(
            f"the checkpoint {init_from}, at which the run began, is not here: do this in a "
            "checkout that holds it, or say with --checkpoint where it lies"
        )
    recorded: Sequence[dict] = card["recorded"]["ledger"]
    changes = {
        "init_from": init_from,
        "max_steps": len(recorded),
        "digest_every": 1,
        "heldout": None,
    }
    train = config.train.model_copy(update=changes)
    torch.set_num_threads(train.threads_per_process)
    choose_algorithms(train.deterministic)
    with contextlib.redirect_stdout(io.StringIO()):
        world = World(0, 1, torch.device(train.device))
        fit(config.model_copy(update={"train": train}), shards, out, world, "prior-gen")
    for then, now in zip(recorded, read_ledger(out / "ledger.jsonl"), strict=True):
        # A digest of the weights stands in every so many lines only.
        odd = [key for key in then if key in now and then[key] != now[key]]
        if odd:
            return (
                f"step {then['step']}: {odd[0]} is {now[odd[0]]}, and was {then[odd[0]]} "
                f"({_other_environment(card, out)})"
            )
    return None


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
