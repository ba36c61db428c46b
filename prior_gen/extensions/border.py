"""Where the classes part, and how many rows of each class a task then takes.

In the paper the border follows pi: the ceil(pi n) rows of largest score are the negatives. In a
real table the classes are what they are, and the share of negatives comes from who was sampled. A
free border lies at a quantile of its own in a larger pool of rows, from which positives and
negatives are sampled until pi holds.
"""

import math
from dataclasses import dataclass

import numpy as np

from prior_gen.sizes import TaskSizes
from puicl_config import ExtensionsConfig

_LEAST = 1e-4  # of a pool on either side of a border


@dataclass(frozen=True)
class ClassCounts:
    """How many rows of each class the finished task has, P labelled positives included."""

    positive: int
    negative: int

    @classmethod
    def of(cls, sizes: TaskSizes) -> "ClassCounts":
        """Those of the paper's task of these sizes: only rows that are kept."""
        negative = sizes.n_negative - sizes.n_removed
        return cls(sizes.n_labeled + sizes.n_unlabeled - negative, negative)

    def shortage(self, negative: np.ndarray) -> int:
        """Rows of the scarcer class that a pool lacks."""
        n_negative = int(negative.sum())
        return max(self.negative - n_negative, self.positive - (len(negative) - n_negative), 0)


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The range of the border's quantile; each task draws its own."""
    return {"range": list(config.border)}


def border_quantile(rng: np.random.Generator, parameters: dict) -> float:
    """The share of a pool that lies on the negatives' side, to four places: never none or all."""
    quantile = round(float(rng.uniform(*parameters["range"])), 4)
    return min(max(quantile, _LEAST), 1 - _LEAST)


def pool_rows(quantile: float, counts: ClassCounts) -> int:
    """The smallest pool in which a border at `quantile` leaves enough rows of both classes."""
    return 2 + math.ceil(max(counts.negative / quantile, counts.positive / (1 - quantile)))
