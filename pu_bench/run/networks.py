"""Identify the network behind results, so that those of another are refused or replaced."""

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
# Parameters of the classifier on which its scores depend, given the same table, seed and weights.
# The network's shape and the size of its contexts (trained range) are taken from the card.
_DECISIVE = ("n_estimators", "scalings", "columns", "blend", "preprocessing")


def network_facts(methods: Iterable[Method]) -> dict[str, dict[str, str]]:
    """Hex SHA-256 of `weights` and of `inference`, each by method, for methods that are PUICL.

    `weights` is the digest of the file. `inference` is the digest of everything else on which the
    scores depend: network and trained range from the card, and the classifier's parameters
    (scalings, passes, blend).
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
    """Methods of `now` whose results in `before` are of another network, and the differing fact.

    Older folders have a method's `weights` but not its `inference`, which is then unknown and
    counts as different.
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
    """Merge the networks of `before` into `now`; drop results of other networks from the log.

    Raises `InputError` if there are any and `new_weights` does not allow dropping them.
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
        # Marks a change of behaviour: before, every estimator read all columns as they are.
        facts["columns_of_two_values"] = "turned"
    if decisive["blend"] == "trees":
        # Marks a change of behaviour: before, trees alone made up a fifth of the rank, whether or
        # not they agreed with the network.
        facts["students"] = "trees and nearest rows, weighed by their agreement with the network"
    if mirrored and n_estimators > 1:
        # No pass is mirrored for networks that were not trained on such tasks.
        facts["graded_tables"] = "every other pass mirrored"
    if not orders_matter:
        # Marks a change of behaviour: before, estimators that could not differ counted only once.
        # If the order of columns matters, no two are equal.
        facts["equal_estimators"] = "counted each"
    return facts


def _turns(scalings: Sequence[str], n_estimators: int) -> list[str]:
    return [scalings[number % len(scalings)] for number in range(n_estimators)]
