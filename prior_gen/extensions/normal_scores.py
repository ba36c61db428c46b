"""Normal scores: columns as `PUICLClassifier` reads them, by rank alone.

Passes of the classifier in quantile scaling turn each column of a table into normal quantiles of
its middle ranks. A network that has met only raw columns meets these marginals for the first time
on real tables; here it is shown them. Ties share a score, so that levels are as far apart as their
shares say.
"""

import numpy as np

from prior_gen import elementary
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """All columns of all tasks of the microbatch: nothing is drawn."""
    return {"columns": "all"}


def normal_scores(x: np.ndarray) -> np.ndarray:
    """x [n, d] of one task with each column replaced by its normal scores, in x's type.

    (Number of smaller cells + half of the equal ones) / n, through the normal quantile function, in
    arithmetic that is the same on every processor.
    """
    out = np.empty_like(x)
    for column in range(x.shape[1]):
        _, places, counts = np.unique(x[:, column], return_inverse=True, return_counts=True)
        middle_ranks = np.cumsum(counts) - counts / 2
        out[:, column] = elementary.normal_quantile(middle_ranks / len(x))[places]
    return out
