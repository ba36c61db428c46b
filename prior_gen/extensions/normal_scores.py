"""Normal scores: columns as `PUICLClassifier` reads them in quantile scaling, by rank alone.

Some passes of the classifier replace each column of a table by the normal quantiles of its
mid-ranks. A network trained on raw columns alone would see these marginals for the first time on
real tables; here it is trained on them. Ties share a score, so the distance between levels depends
on their shares.
"""

import numpy as np

from prior_gen import elementary
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Nothing is drawn: all columns of all tasks in the microbatch become normal scores."""
    return {"columns": "all"}


def normal_scores(x: np.ndarray) -> np.ndarray:
    """x [n, d] of one task with each column replaced by its normal scores, in x's dtype.

    A cell's score is the normal quantile of (number of smaller cells + half of the equal ones) / n,
    in arithmetic that is the same on every processor.
    """
    out = np.empty_like(x)
    for column in range(x.shape[1]):
        _, places, counts = np.unique(x[:, column], return_inverse=True, return_counts=True)
        middle_ranks = np.cumsum(counts) - counts / 2
        out[:, column] = elementary.normal_quantile(middle_ranks / len(x))[places]
    return out
