"""From scores to a PU task: rank-based labels and the split (paper, Sections 2.2-2.3)."""

import numpy as np

from prior_gen.jitted import jit
from prior_gen.sizes import TaskSizes


def negative_rows(rng: np.random.Generator, score: np.ndarray, n_negative: int) -> np.ndarray:
    """Indices [n_negative] of the rows with the largest score; ties are broken at random.

    score: [n]. Rows are permuted at random before a stable sort, so that row order does not decide
    between equal scores.
    """
    shuffled = rng.permutation(len(score))
    if score.dtype != np.float32:
        return shuffled[np.argsort(-score[shuffled], kind="stable")[:n_negative]]
    return _largest_first(score, shuffled)[:n_negative]


def split_rows(
    rng: np.random.Generator, negatives: np.ndarray, sizes: TaskSizes
) -> tuple[np.ndarray, np.ndarray]:
    """Choose the rows of the finished task, and label its unlabelled part.

    Positives and negatives are shuffled separately. The training part takes P positives and
    `n_removed` negatives; these negatives are dropped. The remaining rows, shuffled, are the
    unlabelled part.

    Returns rows [P + n_u] (labelled positives first) and y [n_u] uint8, 1 = positive.
    """
    is_negative = np.zeros(sizes.n_rows, dtype=bool)
    is_negative[negatives] = True
    positives = rng.permutation(np.flatnonzero(~is_negative))
    kept_negatives = rng.permutation(negatives)[sizes.n_removed :]
    labeled, hidden_positives = positives[: sizes.n_labeled], positives[sizes.n_labeled :]
    unlabeled = rng.permutation(np.concatenate([hidden_positives, kept_negatives]))
    y = (~is_negative[unlabeled]).astype(np.uint8)
    return np.concatenate([labeled, unlabeled]), y


@jit
def _largest_first(score, rows):
    """`rows` in descending order of score: a stable radix sort, one pass per byte of a float32."""
    n = len(rows)
    keys, spare_keys = np.empty(n, np.uint32), np.empty(n, np.uint32)
    order, spare_order = rows.copy(), np.empty_like(rows)
    counts = np.zeros((4, 256), np.int64)
    values = score[rows] + np.float32(0.0)  # turns -0 into 0, since both are equal
    bits = values.view(np.uint32)
    for i in range(n):
        # Keys ascend as floats descend; the bits of negative floats ascend with their magnitude.
        key = bits[i] if bits[i] >> 31 else ~(bits[i] | np.uint32(0x80000000))
        keys[i] = key
        for digit in range(4):
            counts[digit, (key >> np.uint32(8 * digit)) & np.uint32(255)] += 1
    for digit in range(4):
        place = 0
        for value in range(256):
            count = counts[digit, value]
            counts[digit, value] = place
            place += count
        for i in range(n):
            value = (keys[i] >> np.uint32(8 * digit)) & np.uint32(255)
            place = counts[digit, value]
            counts[digit, value] += 1
            spare_keys[place], spare_order[place] = keys[i], order[i]
        keys, spare_keys = spare_keys, keys
        order, spare_order = spare_order, order
    return order
