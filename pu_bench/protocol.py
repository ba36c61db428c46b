"""The benchmark's protocol: makes a PU task of a table with known classes (paper, Section 5.1)."""

from dataclasses import dataclass

import numpy as np

MAX_POSITIVES = 600


@dataclass(frozen=True)
class PUTask:
    """One split. x: [n, d], labelled positives first; y: [n - n_labeled], 1 = positive."""

    x: np.ndarray
    n_labeled: int
    y: np.ndarray

    @property
    def P(self) -> np.ndarray:
        """[n_labeled, d]: the labelled positives."""
        return self.x[: self.n_labeled]

    @property
    def U(self) -> np.ndarray:
        """[n - n_labeled, d]: the unlabelled rows."""
        return self.x[self.n_labeled :]

    @property
    def s(self) -> np.ndarray:
        """[n]: 1 for labelled positives, 0 for unlabelled rows."""
        return (np.arange(len(self.x)) < self.n_labeled).astype(int)


def split_pu(x: np.ndarray, positive: np.ndarray, seed: int) -> PUTask:
    """Draw one split: of at most 600 positives, one third is labelled and two thirds are hidden.

    The unlabelled rows are the hidden positives and as many negatives, or all if there are fewer.
    x: [n, d]; positive: boolean [n]. Rows are drawn and shuffled by a local generator seeded with
    `seed`.
    """
    rng = np.random.default_rng(seed)
    positives = rng.permutation(np.flatnonzero(positive))[:MAX_POSITIVES]
    n_hidden = round(2 * len(positives) / 3)
    hidden, labeled = positives[:n_hidden], positives[n_hidden:]
    negatives = rng.permutation(np.flatnonzero(~positive))[:n_hidden]
    unlabeled = rng.permutation(np.concatenate([hidden, negatives]))
    return PUTask(
        x=x[np.concatenate([labeled, unlabeled])],
        n_labeled=len(labeled),
        y=positive[unlabeled].astype(int),
    )
