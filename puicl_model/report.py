"""Reasons not to trust an answer, in sentences a user can act on."""

from collections.abc import Sequence

import numpy as np

FEW_POSITIVES = 10
_EXTREME_PRIOR = 0.02
# A column that orders labelled before unlabelled rows this well, alone, is suspicious.
_SEPARATES = 0.99


def doubts(
    *,
    n_labeled: int,
    class_prior: float,
    relevance: np.ndarray,
    names: Sequence[str],
) -> list[str]:
    """Warnings about a fit; empty where nothing is conspicuous.

    relevance: [w], each column's |2 AUC - 1|, labelled against unlabelled; names: theirs.
    """
    found = []
    if n_labeled < FEW_POSITIVES:
        found.append(
            f"only {n_labeled} labelled positives: with fewer than {FEW_POSITIVES} the scores "
            "depend on which ones they happen to be"
        )
    for name, value in zip(names, relevance, strict=True):
        if value >= _SEPARATES and n_labeled >= FEW_POSITIVES:
            found.append(
                f"column {name} alone tells nearly all labelled from unlabelled rows: either "
                "hardly any unlabelled row is positive, or it knows who was labelled (an "
                "identifier, a date of entry, a note made afterwards) and must be left out"
            )
    if class_prior < _EXTREME_PRIOR:
        found.append(
            f"hardly any unlabelled row looks positive ({class_prior:.1%}): either positives are "
            "rare, or the labelled rows differ from every unlabelled one in how they were collected"
        )
    if class_prior > 1 - _EXTREME_PRIOR:
        found.append(
            f"nearly every unlabelled row looks positive ({class_prior:.1%}): the columns may say "
            "nothing of the class, or there may be hardly any negatives"
        )
    return found
