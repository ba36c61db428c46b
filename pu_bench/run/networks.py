"""Which network results are of, so that those of another give way or are refused."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pu_bench.methods import Method
from pu_bench.methods.in_context import PUICLMethod
from pu_bench.run.cells import cell_of
from pu_bench.run.store import CellLog
from puicl_config import InputError, sha256_of
from puicl_model import TURNED, PUICLClassifier, TrainedRange, auto_scalings, find_weights

NETWORK = ("weights", "inference")
# What an answer depends on, the same table, seed and weights given, beside the network's shape and
# how much of a table it reads at once: parameters of the classifier.
_DECISIVE = ("n_estimators", "scalings", "columns", "blend", "preprocessing")


def network_facts(methods: Iterable[Method]) -> dict[str, dict[str, str]]:
    """Hex SHA-256 by method, for those that are PUICL: of its `weights`, and of its `inference`.

    `weights` is of the file; `inference` of what else the scores depend on: network and trained
    range by the card, and the classifier's parameters (scalings, passes, blend).
    """
    networks = [method for method in methods if isinstance(method, PUICLMethod)]
    paths = {method.name: find_weights(method.model) for method in networks}
    return {
        "weights": {
            name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in paths.items()
        },
        "inference": {
            method.name: sha256_of(_inference(method, paths[method.name])) for method in networks
        },
    }


def other_networks(before: dict[str, Any], now: dict[str, Any]) -> dict[str, str]:
    """Methods of `now` whose results in `before` are another network's, and in which respect.

    A folder that has a method's `weights` and not its `inference` is from before that was written
    down: nobody knows, so that it counts as another's.
    """
    found: dict[str, str] = {}
    for fact in NETWORK:
        for name, digest in now[fact].items():
            known = name in before.get("weights", {})
            if known and before.get(fact, {}).get(name) != digest:
                found.setdefault(name, fact)
    return found


def give_way(
    out: Path, log: CellLog, before: dict[str, Any], now: dict[str, Any], new_weights: bool
) -> dict[str, Any]:
    """`now`, with the networks of methods that only `before` names; drops what is another's.

    Raises `InputError` where there is such and `new_weights` does not allow it.
    """
    others = other_networks(before, now)
    if others and not new_weights:
        name, fact = next(iter(others.items()))
        kind = "weights" if fact == "weights" else "card or parameters"
        raise InputError(
            f"{out} holds results of {name} with other {kind} "
            f"({before.get(fact, {}).get(name, 'unknown')[:16]}...); give another --out, or "
            "--new-weights"
        )
    if others:
        log.rewrite(r for r in log.records(cell_of).values() if r["method"] not in others)
    return {**now, **{fact: {**before.get(fact, {}), **now[fact]} for fact in NETWORK}}


def _inference(method: PUICLMethod, weights: Path) -> dict[str, Any]:
    parameters = PUICLClassifier(**method.parameters).get_params()
    decisive = {name: parameters[name] for name in _DECISIVE}
    n_estimators = decisive["n_estimators"]
    card = json.loads(weights.with_suffix(".json").read_text(encoding="utf-8"))
    trained = asdict(TrainedRange.from_card(card))
    mirrored = trained.pop("mirrored")
    described = {"model": card.get("model"), "trained_range": trained}
    facts: dict[str, Any] = {"parameters": decisive, "card": described}
    orders_matter = (card.get("model") or {}).get("feature_group", [0]) != [0]
    if decisive["scalings"] == "auto":
        numbers, levels = (auto_scalings(orders_matter, alone) for alone in (False, True))
        decisive["scalings"] = numbers
        if _turns(levels, n_estimators) != _turns(numbers, n_estimators):
            facts["scalings_of_levels_alone"] = levels
    kinds = _turns(decisive["scalings"], n_estimators)
    if any(kind not in TURNED for kind in kinds[1:]):
        # Before, every estimator read all columns as they are.
        facts["columns_of_two_values"] = "turned"
    if decisive["blend"] == "trees":
        # Before, trees alone, a fifth of the rank whether they follow the network or not.
        facts["students"] = "trees and nearest rows, weighed by their agreement with the network"
    if mirrored and n_estimators > 1:
        # Of networks that were not shown such tasks no pass is mirrored.
        facts["graded_tables"] = "every other pass mirrored"
    if not orders_matter:
        # Until they counted as often as the scalings say, estimators that could not differ counted
        # once; where column orders matter, none are equal.
        facts["equal_estimators"] = "counted each"
    return facts


def _turns(scalings: Sequence[str], n_estimators: int) -> list[str]:
    return [scalings[number % len(scalings)] for number in range(n_estimators)]
