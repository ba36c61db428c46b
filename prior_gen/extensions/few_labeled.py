"""A handful of labelled positives beside many unlabelled rows: the first cases of a disease.

`n_labeled` and `eta` cannot say it together: few labelled rows times an ordinary eta leave few
rows of any kind, and a large eta times an ordinary P leaves too many.
"""

import numpy as np

from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig) -> dict:
    """P and n_u, log-uniform, in place of those of the microbatch's own ranges."""
    return {
        "n_labeled": _count(rng, config.few_labeled_rows),
        "n_unlabeled": _count(rng, config.few_labeled_unlabeled_rows),
    }


def _count(rng: np.random.Generator, interval: tuple[int, int]) -> int:
    # Half a count beyond both ends: the ends are as likely as their neighbours.
    low, high = interval
    return int(np.clip(round(log_uniform(rng, (low - 0.5, high + 0.5))), low, high))
