"""Labels made from columns: classes are proposed until a pool holds enough rows of both."""

from collections.abc import Callable

import numpy as np

from prior_gen.extensions.border import ClassCounts

# Pools for trees and rules have this many times the rows of the finished task.
POOL_FACTOR = 3
_TRIES = 24


def accepted_classes(
    rng: np.random.Generator,
    counts: ClassCounts,
    propose: Callable[[int], tuple[np.ndarray, list[int]]],
) -> tuple[np.ndarray, dict]:
    """Draw classes of a pool with enough rows of both: is_negative [n], and the task's facts.

    `propose` takes the number of earlier attempts and returns a condition on the rows (bool [n])
    and the columns that it reads. The condition or its negation gives the negatives. If all
    attempts fail, the best one is completed with random rows of the other class; the fact `forced`
    is their number.
    """
    shortage: int | None = None
    for attempt in range(_TRIES):
        holds, read = propose(attempt)
        turned = rng.random() < 0.5
        for one in (holds, ~holds) if turned else (~holds, holds):
            lacking = counts.shortage(one)
            if shortage is None or lacking < shortage:
                shortage, negative, columns = lacking, one, read
        if shortage == 0:
            break
    if shortage:
        scarce_is_negative = int(negative.sum()) < counts.negative
        surplus = np.flatnonzero(negative != scarce_is_negative)
        negative = negative.copy()
        negative[rng.permutation(surplus)[:shortage]] = scarce_is_negative
    facts = {
        "columns": columns,
        "negative_share": round(float(negative.mean()), 4),
        "forced": shortage,
    }
    return negative, facts
