"""The classes of a pool's rows, from a tree, a rule, a score or the clusters, and label noise."""

from dataclasses import dataclass

import numpy as np

from prior_gen.extensions.drawn import labeled_by_columns
from prior_gen.extensions.noise import flipped_rows
from prior_gen.extensions.pool import Draft, Pool
from prior_gen.extensions.rules import rule_labels
from prior_gen.extensions.soft_border import soften
from prior_gen.extensions.trees import tree_labels
from prior_gen.pu_split import negative_rows


@dataclass(frozen=True)
class Classes:
    """Observed classes: `negative`, bool [n], of which label noise has changed `flipped` [n]."""

    negative: np.ndarray
    flipped: np.ndarray


def draw_classes(draft: Draft, pool: Pool) -> Classes:
    """Give every row of the pool a class, and change some of them if the labels are noisy."""
    border = _border(draft, pool)
    negative = _true_classes(draft, pool, border)
    flipped = np.zeros(len(negative), dtype=bool)
    if "label_noise" in draft.chosen:
        flipped = flipped_rows(*draft.own("label_noise"), negative, border)
    return Classes(negative ^ flipped, flipped)


def _border(draft: Draft, pool: Pool) -> np.ndarray | None:
    """The score that the classes are cut from, [n], large for negatives, or None without one."""
    border = pool.score
    if "soft_border" in draft.chosen:
        assert border is not None, "of those with a score"
        border = soften(*draft.own("soft_border"), border)
    heads = _heads_of_classes(draft, pool)
    return border if border is None or heads is None else border[heads]


def _true_classes(draft: Draft, pool: Pool, border: np.ndarray | None) -> np.ndarray:
    chosen, counts = draft.chosen, draft.counts
    if pool.negative is not None:
        return pool.negative
    if not labeled_by_columns(chosen):
        assert border is not None, "where nothing else gives labels, a score does"
        negative = np.zeros(len(pool.x), dtype=bool)
        negative[negative_rows(draft.rng, border, pool.n_negative)] = True
        return negative
    if "tree_labels" in chosen:
        negative, draft.facts["tree_labels"] = tree_labels(
            *draft.own("tree_labels"), chosen, pool.x, counts
        )
    else:
        negative, draft.facts["rule_labels"] = rule_labels(
            *draft.own("rule_labels"), chosen, pool.x, pool.codes, counts
        )
    heads = _heads_of_classes(draft, pool)
    # A pool in which a class would then be short of rows keeps the classes of single rows.
    if heads is not None and not counts.shortage(negative[heads]):
        negative = negative[heads]
    return negative


def _heads_of_classes(draft: Draft, pool: Pool) -> np.ndarray | None:
    """The first row of each row's group, int [n], if rows of a group share a class."""
    shared = pool.heads is not None and draft.chosen["grouped"]["one_class"]
    return pool.heads if shared else None
