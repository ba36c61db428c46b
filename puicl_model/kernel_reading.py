"""Further passes of a blend: the network reads the table along the axes of kernels."""

import numpy as np

from puicl_model.contexts import TrainedRange
from puicl_model.ensemble import NewRows, keep_references, score_unlabeled
from puicl_model.kernel_axes import MOST_ROWS, ForestAxes, GaussianAxes
from puicl_model.model import PUICL
from puicl_model.plan import plan_table
from puicl_model.trees import thin

_PASSES = 2  # along the axes of each kernel; more of the same axes say little else

Axes = ForestAxes | GaussianAxes


class KernelReader:
    """The network with what it read of a table along some axes, for new rows."""

    def __init__(self, axes: Axes, new_rows: NewRows):
        self.axes, self.new_rows = axes, new_rows

    def __call__(
        self, X: np.ndarray, batch_rows: int, verbose: bool | None = None, keep: bool = False
    ) -> np.ndarray:
        """Log-odds [m] of rows X [m, w], preprocessed but unscaled, each by itself."""
        return self.new_rows(self.axes(X), batch_rows, verbose, keep).mean(axis=0)


def read_along_kernels(
    network: PUICL,
    trained: TrainedRange,
    X: np.ndarray,
    labeled: np.ndarray,
    answers: np.ndarray,
    *,
    n_estimators: int,
    rng: np.random.Generator,
    verbose: bool | None = None,
    keep: bool = False,
) -> tuple[list[KernelReader], np.ndarray]:
    """Readers along the axes of trees and of distances, and the unlabelled rows' log-odds [r, n_u].

    X: [n, w], preprocessed but unscaled; labeled: boolean [n]; answers: P(positive) [n] as the
    trees are to learn it; n_estimators: of the ensemble beside which they are; r is at most 2, less
    where a kernel finds all rows alike. Kernels are made of 2,000 rows at most.
    """
    trees_rng, rows_rng, *plan_rngs = rng.spawn(6)
    kept = np.sort(thin(labeled, rows_rng, MOST_ROWS))
    kinds = (
        ForestAxes.of(X[kept], labeled[kept], answers[kept], trees_rng),
        GaussianAxes.of(X[kept]),
    )
    axes = [each for each in kinds if each is not None]
    plans = []
    for each, views, rotations in zip(axes, plan_rngs[::2], plan_rngs[1::2], strict=False):
        along = each(X)
        plans.append(
            plan_table(
                along,
                labeled,
                np.ones(along.shape[1]),
                n_estimators=min(_PASSES, n_estimators),
                scalings=("standard",),
                orders_matter=network.orders_matter,
                trained=trained,
                rng=views,
                rotations=rotations,
            )
        )
    found = score_unlabeled(network, plans, verbose, keep)
    readers = [
        KernelReader(each, NewRows(network, keep_references(plan), plan.scalings, scores.read))
        for each, plan, scores in zip(axes, plans, found, strict=True)
    ]
    n_unlabeled = int((~labeled).sum())
    log_odds = [scores.log_odds.mean(axis=0) for scores in found]
    return readers, np.array(log_odds).reshape(len(readers), n_unlabeled)
