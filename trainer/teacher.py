"""Soft targets from the run's own moving average (train.self_distillation).

One pass depends on the order, scaling and directions of a table's columns; the mean of several
passes ranks better and is better calibrated. A network that learns the mean's probabilities along
with the classes may need fewer passes (not shown yet: docs/weights.md). The teacher is the moving
average of the weights (Tarvainen and Valpola, Mean teachers are better role models, NeurIPS 2017),
so that the run remains reproducible without any other network.
"""

import functools

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from puicl_config import TrainConfig
from puicl_model import PUICL
from trainer.loader import Batch

# Seed domain of the teacher's views, separate from the samplers' and the revealed rows'.
_VIEWS_KEY = 1_000_003


class Averaged:
    """`model` with the parameters `average`, callable like the networks of the classifier.

    Only one thread may call it at a time: meanwhile the model itself holds the average.
    """

    def __init__(self, model: PUICL, average: dict[str, Tensor]):
        self._model, self._average = model, average
        self.unlabeled_token = average["unlabeled_token"]
        self.orders_matter = model.orders_matter

    def __call__(self, x: Tensor, n_labeled: int) -> Tensor:
        """Logits of (negative, positive), as those of `PUICL.forward`."""
        return functional_call(self._model, self._average, (x, n_labeled))


def soft_targets(network: Averaged, batch: Batch, train: TrainConfig) -> Tensor:
    """P(positive) by `network`, [T, n_u] float32, from the mean log-odds over views of each task.

    `train.self_distillation.passes` views are drawn as `PUICLClassifier` would for the table, by
    (seed, address, task) alone.
    """
    # Imported here, since they need SciPy, and a trainer without a teacher does not.
    from puicl_model.contexts import TrainedRange, column_relevance
    from puicl_model.plan import plan_table
    from puicl_model.unlabeled import score_unlabeled

    n_rows = batch.x.shape[1]
    labeled = np.arange(n_rows) < batch.n_labeled
    # This range makes each task a single context, whatever its size.
    whole = TrainedRange(n_rows, n_rows, batch.x.shape[2], (1e-9, float(n_rows)))
    plans = []
    with _libraries().limit(limits=1, user_api="blas"):  # same bits for any number of processes
        for number, x in enumerate(batch.x.double().numpy()):
            seeds = np.random.SeedSequence(
                train.seed, spawn_key=(_VIEWS_KEY, *batch.address, number)
            )
            rng, rotations = (np.random.Generator(np.random.Philox(s)) for s in seeds.spawn(2))
            plans.append(
                plan_table(
                    x,
                    labeled,
                    column_relevance(x, labeled),
                    n_estimators=train.self_distillation.passes,
                    orders_matter=network.orders_matter,
                    trained=whole,
                    rng=rng,
                    rotations=rotations,
                )
            )
    scores = score_unlabeled(network, plans, verbose=False, one_at_a_time=True)
    mean = np.stack([each.log_odds.mean(axis=0) for each in scores])
    return torch.sigmoid(torch.from_numpy(mean)).float()


@functools.cache
def _libraries():
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
