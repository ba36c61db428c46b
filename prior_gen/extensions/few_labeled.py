"""A handful of labelled positives beside many unlabelled rows: the first cases of a disease.

The ranges `n_labeled` and `eta` cannot express this: few labelled rows with a usual eta give few
rows in total, and a large eta with a usual P gives too many.
"""

import numpy as np

from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig) -> dict:
    """P and n_u, both log-uniform, in place of those from the microbatch's ranges."""
    return {
        "n_labeled": _count(rng, config.few_labeled_rows),
        "n_unlabeled": _count(rng, config.few_labeled_unlabeled_rows),
    }


def _count(rng: np.random.Generator, interval: tuple[int, int]) -> int:
    # Extend both ends by half a count, so that the ends are as likely as their neighbours.
    low, high = interval
    return int(np.clip(round(log_uniform(rng, (low - 0.5, high + 0.5))), low, high))
