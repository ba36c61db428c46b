"""Small microbatches of the prior beyond the paper, and ways to look at them."""

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from prior_gen import generate_microbatch
from puicl_config import Config

SMALL = {"n_labeled": (40, 80), "n_features": (4, 8), "tasks_per_microbatch": 4}
PAPER_LAST = 100


def config(prior=None, **extensions) -> Config:
    plan = {**SMALL, "extensions": {"share": 1.0, **extensions}, **(prior or {})}
    return Config(prior=plan, shards={"x_dtype": "float32"})


def microbatches(count, prior=None, **extensions):
    wanted = config(prior, **extensions)
    return [generate_microbatch(wanted, PAPER_LAST, step, 0) for step in range(count)]


def extended_by(name, batches):
    return [(batch, batch.tags["extensions"][name]) for batch in batches]


def with_labels(batch):
    """All rows of each task with their class, 1 = positive."""
    for x, y in zip(batch.x, batch.y, strict=True):
        yield x, np.concatenate([np.ones(batch.n_labeled, dtype=int), y])


def grid(rng, n=900, d=6, levels=3):
    """Independent columns of equally likely codes, as x and codes."""
    codes = rng.integers(levels, size=(n, d))
    return ((codes - codes.mean(0)) / codes.std(0)).astype(np.float32), codes


def cross_fitted_auc(model, x, y) -> float:
    return roc_auc_score(y, cross_val_predict(model, x, y, cv=3, method="predict_proba")[:, 1])
