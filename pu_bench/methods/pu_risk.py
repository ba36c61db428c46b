"""nnPU, uPU and PUSB: networks that minimise a PU risk for a given class prior."""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.class_prior import best_bin_estimate
from pu_bench.methods.networks import (
    batches,
    generator_of,
    held_out,
    mlp,
    one_thread,
    tensors,
)
from pu_bench.methods.risks import (
    logistic_loss,
    non_negative_objective,
    sigmoid_loss,
    unbiased_risk,
)
from pu_bench.methods.rows import standardized

HIDDEN = [300] * 3
EPOCHS = 50
BATCH_SIZE = 64
LEARNING_RATE, WEIGHT_DECAY = 3e-4, 5e-3
HELD_OUT = 0.2


class RiskMinimiser(Method):
    """A network of 300-300-300 trained by Adam on a PU risk; alpha by best-bin estimation.

    The score is the network's output g, the class its sign. Columns are standardised; an epoch is
    one pass over U in batches of 64, with P repeated; 50 epochs, weight decay as in Kiryo et al.
    `chosen_by_held_out_risk`: the epoch with the lowest unbiased risk on a held-out fifth of P and
    U is taken instead of the last.

    Otherwise than in Kiryo et al.'s program: three hidden layers (theirs: four of 300, each with
    batch normalisation), columns standardised, as many rows of P in a batch as of U (theirs: as
    they come, in batches of half of all rows), 50 epochs at a step of 3e-4 (theirs: 100 at 1e-3).
    On the development tables nnPU with their network, batches and steps ranks worse (mean AUC .80
    instead of .83 over two splits of each; the script was not kept).
    """

    loss: ClassVar[Callable]
    objective: ClassVar[Callable]
    chosen_by_held_out_risk: ClassVar[bool] = False

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        return self.predict_given(P, U, seed, best_bin_estimate(P, U, seed))

    def predict_given(self, P, U, seed: int, alpha: float) -> Prediction:
        """The prediction when the share of positives among U is taken to be `alpha`."""
        p, u = tensors(*standardized(P, U))
        with one_thread():
            g = self._decision(p, u, alpha, generator_of(seed))
        score = g.numpy().astype(float)
        return Prediction(score, self.label(score, alpha), alpha)

    def label(self, score: np.ndarray, alpha: float) -> np.ndarray:
        """Classes [n_u] from g [n_u]."""
        return (score > 0).astype(int)

    def _decision(self, p, u, alpha, generator) -> torch.Tensor:
        """g [n_u] of u [n_u, d] at the epoch that is taken."""
        network = mlp([u.shape[1], *HIDDEN, 1], generator)
        optimizer = torch.optim.Adam(
            network.parameters(), LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True
        )
        train_p, train_u, test = p, u, None
        if self.chosen_by_held_out_risk:
            parts = [held_out(len(rows), HELD_OUT, generator) for rows in (p, u)]
            train_p, train_u = p[parts[0][0]], u[parts[1][0]]
            test = p[parts[0][1]], u[parts[1][1]]
        feed_p, feed_u = (batches(rows, BATCH_SIZE, generator) for rows in (train_p, train_u))
        best_risk, best = math.inf, None
        for _ in range(EPOCHS):
            for _ in range(max(len(train_u) // BATCH_SIZE, 1)):
                batch_p, batch_u = next(feed_p), next(feed_u)
                g = network(torch.cat([batch_p, batch_u]))[:, 0]
                objective = self.objective(g[: len(batch_p)], g[len(batch_p) :], alpha, self.loss)
                optimizer.zero_grad()
                objective.backward()
                optimizer.step()
            if test is not None:
                with torch.no_grad():
                    g_p, g_u = (network(rows)[:, 0] for rows in test)
                    risk = unbiased_risk(g_p, g_u, alpha, self.loss).item()
                    if risk < best_risk:
                        best_risk, best = risk, network(u)[:, 0]
        with torch.no_grad():
            return network(u)[:, 0] if best is None else best


class NNPU(RiskMinimiser):
    """Non-negative PU learning: the negatives' part of the risk is kept from going below zero.

    Sigmoid loss, `RiskMinimiser`'s network and settings, the last epoch.
    """

    name = "nnpu"
    title = "nnPU"
    reference = "Kiryo, Niu, du Plessis and Sugiyama, NeurIPS 2017, Equation 6, Algorithm 1"
    loss = staticmethod(sigmoid_loss)
    objective = staticmethod(non_negative_objective)


class UPU(RiskMinimiser):
    """Unbiased PU learning: the risk as it is, which a network can drive below zero.

    Sigmoid loss, `RiskMinimiser`'s network and settings. The epoch is chosen by the risk on
    held-out rows of P and U: du Plessis et al. choose their model so, and without it a network
    overfits (Kiryo et al.).
    """

    name = "upu"
    title = "uPU"
    reference = "du Plessis, Niu and Sugiyama, ICML 2015; sigmoid loss and network of nnPU here"
    loss = staticmethod(sigmoid_loss)
    objective = staticmethod(unbiased_risk)
    chosen_by_held_out_risk = True


class PUSB(RiskMinimiser):
    """PU learning with selection bias: only the order of the scores is trusted.

    The non-negative risk with the logistic loss gives a score that keeps the posterior's order
    even where labelling depends on it; the positives are the alpha share of U that scores
    highest. This is the authors' program for networks, nnPUSB (the paper's kernel machine minimises
    the unbiased risk); `RiskMinimiser`'s network and settings, the last epoch.
    """

    name = "pusb"
    title = "PUSB"
    reference = "Kato, Teshima and Honda, ICLR 2019"
    loss = staticmethod(logistic_loss)
    objective = staticmethod(non_negative_objective)

    def label(self, score, alpha):
        """Positive: the round(alpha * n_u) highest scores."""
        label = np.zeros(len(score), dtype=int)
        label[np.argsort(-score, kind="stable")[: round(alpha * len(score))]] = 1
        return label


class _TruePrior(RiskMinimiser):
    """Given the true share of positives instead of an estimate: a reference, not a rival."""

    sees = frozenset({"class_prior"})

    def fit_predict(self, P, U, seed, class_prior):
        """See `Method.fit_predict`; `class_prior`: share of positives among U."""
        return self.predict_given(P, U, seed, class_prior)


class NNPUTruePrior(_TruePrior, NNPU):
    """nnPU given the true share of positives."""

    name = "nnpu_true_prior"
    title = "nnPU given the true π"


class UPUTruePrior(_TruePrior, UPU):
    """uPU given the true share of positives."""

    name = "upu_true_prior"
    title = "uPU given the true π"


class PUSBTruePrior(_TruePrior, PUSB):
    """PUSB given the true share of positives."""

    name = "pusb_true_prior"
    title = "PUSB given the true π"
