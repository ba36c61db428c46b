"""Check what a card of `export_weights` records, and replay the recorded training steps."""

import contextlib
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from puicl_config import Config, InputError, parse_config, plan_digest, run_digest
from shard_io import open_shards
from trainer.checkpoint import Lineage
from trainer.fit import fit
from trainer.ledger import read_ledger
from trainer.sampler import stages_of_steps
from trainer.start import is_there, start_digest
from trainer.world import World, choose_algorithms

# Relative tolerances for runs that are not reproducible to the bit (`gave_bits_up`), replayed on
# any device. Between an H200 and a CPU, three steps of `gpu_deep_again` differed by at most .0003
# and .004.
REPLAY_TOLERANCE = {"loss": 0.002, "gradient_norm": 0.02}

# What `export_weights` writes beside the config, of the run and of its recorded steps.
_NEEDED = {
    *("steps", "of_steps", "run_digest", "plan_digest", "model", "lineage"),
    *("weights_digest", "environments"),
}
_NEEDED_OF_STEPS = {"ledger", "parts", "init_from"}


def recorded_stages(card: Mapping[str, Any]) -> tuple[Config, list[int]]:
    """Config of a card written by `export_weights`, and the stages that its recorded steps read.

    Raises `InputError` if the card records no steps (that of a mean of checkpoints never does), if
    it lacks an entry, or if its config, digests and numbers of steps contradict one another.
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
    if lacking := [*(_NEEDED - card.keys()), *(_NEEDED_OF_STEPS - card["recorded"].keys())]:
        raise InputError(f"the weights' card is damaged: it lacks {', '.join(sorted(lacking))}")
    commit = card.get("git_commit") or "unknown"
    config = parse_config(card["config"], where=f"the weights' card, of commit {commit}")
    recorded, total = len(card["recorded"]["ledger"]), config.prior.total_steps
    steps: Any = total
    if card.get("unfinished"):
        stopped = card["steps"] in range(recorded, total)
        steps = card["steps"] if stopped else f"{recorded} to {total - 1}, unfinished"
    for key, stated in {
        "plan_digest": plan_digest(config.prior),
        "run_digest": run_digest(config, _start_of(card)),
        "of_steps": total,
        "steps": steps,
        "model": config.model.model_dump(mode="json"),
    }.items():
        if card[key] != stated:
            raise InputError(
                f"the weights' card contradicts itself: {key} is {card[key]}, its config says "
                f"{stated} (the card was written by commit {commit})"
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
    if card["recorded"]["init_from"] and not init_from:
        raise InputError(f"the run began at {card['recorded']['init_from']}: say where that is")
    if init_from and not is_there(init_from):
        raise InputError(
            f"{init_from}, at which the run began, is not here: do this in a checkout that holds "
            "it, or say with --checkpoint where it lies"
        )
    if init_from and start_digest(init_from) != _start_of(card):
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
    loose = gave_bits_up(config)  # as it was recorded: here it may run on another device
    recorded: Sequence[dict] = card["recorded"]["ledger"]
    config = _of_recorded_steps(config, card, init_from)
    train = config.train
    torch.set_num_threads(train.threads_per_process)
    choose_algorithms(train.deterministic)
    with contextlib.redirect_stdout(io.StringIO()):
        fit(config, shards, out, World(0, 1, torch.device(train.device)))
    again = list(read_ledger(out / "ledger.jsonl"))
    if len(again) < len(recorded):
        raise InputError(f"stopped after {len(again)} of {len(recorded)} steps: start it again")
    difference = _first_difference(recorded, again, loose)
    return f"{difference} ({_other_environment(card, out)})" if difference else None


def _of_recorded_steps(config: Config, card: Mapping[str, Any], init_from: str | None) -> Config:
    """The run's `config` with what a replay of the recorded steps changes, on this machine."""
    changes: dict[str, Any] = {
        "init_from": init_from,
        "max_steps": len(card["recorded"]["ledger"]),
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
    return config.model_copy(update={"train": config.train.model_copy(update=changes)})


def _first_difference(then: Sequence[dict], now: Sequence[dict], loose: bool) -> str | None:
    """Describe the first difference between two ledgers of the same steps; None if there is none.

    `loose`: see `_agree`; weights, which no tolerance fits, are then not compared.
    """
    for old, new in zip(then, now, strict=True):
        # Only some lines hold a digest of the weights (train.digest_every).
        shared = [key for key in old if key in new and not (loose and key == "weights")]
        odd = next((key for key in shared if not _agree(key, old[key], new[key], loose)), None)
        if odd:
            return f"step {old['step']}: {_difference(odd, old[odd], new[odd])}"
    return None


def _start_of(card: Mapping[str, Any]) -> str | None:
    """Digest of the tensors that the recorded run began from; None if it began from its seed."""
    return Lineage(tuple(card["lineage"])).parent


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
