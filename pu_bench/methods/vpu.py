"""VPU: variational PU learning, without a class prior."""

import math
from itertools import product

import numpy as np
import torch
from torch.nn.functional import logsigmoid

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.networks import (
    batches,
    generator_of,
    held_out,
    mlp,
    one_thread,
    tensors,
)
from pu_bench.methods.rows import standardized

HIDDEN = [300] * 6
LEARNING_RATES = (1e-3, 1e-4)
MIXUP_WEIGHTS = (0.03, 0.3)
EPOCHS, HALVE_EVERY = 50, 20
PATIENCE = 10
BATCH_SIZE = 100
MIXUP_ALPHA = 0.3
HELD_OUT = 0.2


class VPU(Method):
    """Phi(x) = P(positive | x) up to its maximum, by the variational loss with MixUp.

    Six hidden layers of 300, Adam with betas (.5, .99), 50 epochs, the learning rate halved every
    20. Learning rate, weight of the regulariser and epoch are those of the lowest variational
    loss on a held-out fifth of P and U, as in the paper; the hidden labels play no part. The
    score is Phi / max over U of Phi.

    Otherwise than in the authors' program: columns are standardised; the mean of Phi is over U
    alone, the rows that are scored (theirs: over a table that labelled rows are drawn from and stay
    in); Phi is the sigmoid of one output (theirs: one of two by softmax); the grid is 2 x 2;
    batches are of 100 rows (theirs: 500, more than P has), an epoch is one pass over U (theirs: 30
    batches), and a fit ends when 10 epochs have not lowered the held-out loss. With P added to U,
    Phi is of classes with more positives: over two splits of each development table mean AUC was
    .834 instead of .829 (difference .005, standard error .008) and accuracy .734 instead of .693
    (.041, .020); the script was not kept.
    """

    name = "vpu"
    title = "VPU"
    reference = "Chen, Liu, Wang, Zhao and Wu, NeurIPS 2020 (arXiv 1906.00642)"
    is_probability = True

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        generator = generator_of(seed)
        p, u = tensors(*standardized(P, U))
        parts_p, parts_u = (held_out(len(rows), HELD_OUT, generator) for rows in (p, u))
        train = p[parts_p[0]], u[parts_u[0]]
        validation = p[parts_p[1]], u[parts_u[1]]
        best_loss, best_log_phi = math.inf, torch.zeros(len(u))
        with one_thread():
            for rate, weight in product(LEARNING_RATES, MIXUP_WEIGHTS):
                loss, log_phi = _fit(train, validation, u, rate, weight, generator)
                if loss < best_loss:
                    best_loss, best_log_phi = loss, log_phi
        score = torch.exp(best_log_phi - best_log_phi.max()).numpy().astype(float)
        return Prediction(score, (score >= 0.5).astype(int), float(score.mean()))


def variational_loss(log_phi_p: torch.Tensor, log_phi_u: torch.Tensor) -> torch.Tensor:
    """log mean of Phi over U minus mean of log Phi over P.

    log_phi_p: [n_p], log_phi_u: [n_u]. Lowest where Phi is P(positive | x) up to a factor.
    """
    log_mean = torch.logsumexp(log_phi_u, 0) - math.log(len(log_phi_u))
    return log_mean - log_phi_p.mean()


def mixup_loss(log_target: torch.Tensor, log_phi_mixed: torch.Tensor) -> torch.Tensor:
    """Mean squared difference of logarithms (the regulariser); both [batch]."""
    return (log_target - log_phi_mixed).square().mean()


def _fit(train, validation, u, rate, weight, generator) -> tuple[float, torch.Tensor]:
    """Lowest held-out loss over the epochs, and log Phi [n_u] of u at that epoch."""
    network = mlp([u.shape[1], *HIDDEN, 1], generator)
    size = min(BATCH_SIZE, len(train[0]), len(train[1]))
    feed = [batches(rows, size, generator) for rows in train]
    mixing = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    parameters = list(network.parameters())
    best_loss, best_epoch, best_log_phi = math.inf, 0, torch.zeros(len(u))

    def log_phi(x: torch.Tensor) -> torch.Tensor:
        return logsigmoid(network(x)[:, 0])

    for epoch in range(EPOCHS):
        if epoch % HALVE_EVERY == 0:
            # a fresh optimizer at each halving, as in the authors' program
            optimizer = torch.optim.Adam(
                parameters, rate * 0.5 ** (epoch // HALVE_EVERY), betas=(0.5, 0.99), fused=True
            )
        for _ in range(len(train[1]) // size):
            batch_p, batch_u = (next(rows) for rows in feed)
            log_phi_p, log_phi_u = log_phi(torch.cat([batch_p, batch_u])).split(size)
            share = float(mixing.beta(MIXUP_ALPHA, MIXUP_ALPHA))
            mixed = share * batch_u + (1 - share) * batch_p
            log_target = torch.log(share * log_phi_u.exp() + (1 - share))
            loss = variational_loss(log_phi_p, log_phi_u)
            loss = loss + weight * mixup_loss(log_target, log_phi(mixed))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            held_out_loss = variational_loss(*(log_phi(rows) for rows in validation)).item()
            if held_out_loss < best_loss:
                best_loss, best_epoch, best_log_phi = held_out_loss, epoch, log_phi(u)
        if epoch - best_epoch >= PATIENCE:
            break
    return best_loss, best_log_phi
