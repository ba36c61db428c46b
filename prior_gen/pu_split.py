"""From scores to a PU task: rank-based labels and the split (paper, Sections 2.2-2.3)."""

import numpy as np

from prior_gen.sizes import TaskSizes


def negative_rows(rng: np.random.Generator, score: np.ndarray, n_negative: int) -> np.ndarray:
    """Indices of the `n_negative` rows with the largest score; ties fall at random.

    score: [n]. A random permutation comes first and the sort is stable, so that among equal
    scores no row order is preferred.
    """
    shuffled = rng.permutation(len(score))
    return shuffled[np.argsort(-score[shuffled], kind="stable")[:n_negative]]


def split_rows(
    rng: np.random.Generator, negatives: np.ndarray, sizes: TaskSizes
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the finished task and labels of its unlabelled part.

    Positives and negatives are shuffled in pools of their own; the training part takes P
    positives and `n_removed` negatives, which are dropped; the rest is the unlabelled part,
    shuffled.

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
