"""The border between the classes, and how many rows of each class a task takes.

In the paper the border follows pi: the ceil(pi n) rows with the largest scores are the negatives.
In a real table the classes are given, and the share of negatives depends on which rows were
sampled. A free border lies at its own quantile of the scores in a larger pool of rows, from which
as many positives and negatives are sampled as pi requires.
"""

import math
from dataclasses import dataclass

import numpy as np

from prior_gen.sizes import TaskSizes
from puicl_config import ExtensionsConfig

_LEAST = 1e-4  # share of a pool on either side of the border


@dataclass(frozen=True)
class ClassCounts:
    """How many rows of each class the finished task has, including the P labelled positives."""

    positive: int
    negative: int

    @classmethod
    def of(cls, sizes: TaskSizes) -> "ClassCounts":
        """The counts of a task of these sizes in the paper's prior, without the removed rows."""
        negative = sizes.n_negative - sizes.n_removed
        return cls(sizes.n_labeled + sizes.n_unlabeled - negative, negative)

    def shortage(self, negative: np.ndarray) -> int:
        """How many rows of its scarcer class a pool lacks; negative: bool [n], its negatives."""
        n_negative = int(negative.sum())
        return max(self.negative - n_negative, self.positive - (len(negative) - n_negative), 0)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The range of the border's quantile; each task draws its own quantile."""
    return {"range": list(config.border)}


def border_quantile(rng: np.random.Generator, parameters: dict) -> float:
    """Draw the share of a pool on the negatives' side, to four decimals; never 0 or 1."""
    quantile = round(float(rng.uniform(*parameters["range"])), 4)
    return min(max(quantile, _LEAST), 1 - _LEAST)


def pool_rows(quantile: float, counts: ClassCounts) -> int:
    """The size of a pool in which a border at `quantile` leaves enough rows of both classes."""
    return 2 + math.ceil(max(counts.negative / quantile, counts.positive / (1 - quantile)))
