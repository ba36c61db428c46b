"""Helpers for `drawn`: the extensions drawn so far, by name, with parameters as in the tag."""

from collections.abc import Collection
from typing import Any

import numpy as np

Parameters = dict[str, Any]


def labeled_by_columns(names: Collection[str]) -> bool:
    """Whether a tree or a rule over the columns gives the labels."""
    return "tree_labels" in names or "rule_labels" in names


def labeled_by_score(names: Collection[str]) -> bool:
    """Whether the classes are cut from the score of an SCM, a factor model or a graph."""
    return not labeled_by_columns(names) and "cluster_labels" not in names


def relevant_columns(n_features: int, drawn: dict[str, Parameters]) -> np.ndarray:
    """The columns that are neither irrelevant nor copies of another column."""
    others = [*drawn.get("irrelevant", {}).get("columns", ())]
    others += [copy for _, copy in drawn.get("duplicated", {}).get("pairs", ())]
    return np.setdiff1d(np.arange(n_features), others)


def log_uniform(rng: np.random.Generator, interval: tuple[float, float]) -> float:
    """Draw a number from `interval` whose logarithm is uniform."""
    low, high = np.log(interval)
    return float(np.exp(rng.uniform(low, high)))


def some_columns(
    rng: np.random.Generator, share: tuple[float, float], columns: np.ndarray
) -> list[int]:
    """Draw a share of `columns`, uniform in `share`, in random order.

    At least one column is drawn and at least one is left; of fewer than two columns, none is drawn.
    """
    if len(columns) < 2:
        return []
    count = round(float(rng.uniform(*share)) * len(columns))
    count = min(max(count, 1), len(columns) - 1)
    return rng.permutation(columns)[:count].tolist()
