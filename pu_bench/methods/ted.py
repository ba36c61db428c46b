"""(TED)^n: best-bin estimation of the class prior and a classifier that discards, in turns."""

import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

from pu_bench.methods.base import Method, Prediction
from pu_bench.methods.class_prior import best_bin
from pu_bench.methods.networks import (
    batches,
    generator_of,
    held_out,
    mlp,
    one_thread,
    tensors,
)
from pu_bench.methods.rows import standardized

HIDDEN = [512, 512]
WARM_START, EPOCHS = 20, 50
LEARNING_RATE, MOMENTUM, WEIGHT_DECAY = 0.03, 0.9, 5e-4
BATCH_SIZE = 64
HELD_OUT = 0.2


class TED(Method):
    """Transform, estimate, discard: CVIR and best-bin estimation, each epoch with the other.

    A network of 512-512 first tells P from U (the warm start). Then, in each epoch, the share
    alpha of positives is estimated from held-out rows and the classifier is trained on P as
    positive and on U as negative without the alpha share that looks most positive. The score is
    the last epoch's P(positive | x), of classes that weigh alike, as in the authors' program; the
    estimate the last epoch's alpha.

    Otherwise than in that program: columns are standardised, the network has one output (theirs:
    two by softmax), a fifth of P and U is held out (theirs: a half), batches are of 64 rows
    (theirs: 200) and an epoch is one pass over U, with P repeated; 20 + 50 epochs at a learning
    rate of .03.
    """

    name = "ted"
    title = "(TED)^n"
    reference = (
        "Garg, Wu, Smola, Balakrishnan and Lipton, NeurIPS 2021 (arXiv 2111.00980), Algorithms 1-3"
    )
    is_probability = True

    def fit_predict(self, P, U, seed):
        """See `Method.fit_predict`."""
        generator = generator_of(seed)
        p, u = tensors(*standardized(P, U))
        with one_thread():
            logit, alpha = _fit(p, u, generator)
        score = torch.sigmoid(logit).numpy().astype(float)
        return Prediction(score, (score >= 0.5).astype(int), alpha)


def kept_by_cvir(score: torch.Tensor, alpha: float) -> torch.Tensor:
    """Indices of the rows that CVIR keeps as negatives: all but the top int(alpha * n).

    score: [n], higher is more positive. Conditional value ignoring risk, Algorithm 2.
    """
    n_kept = len(score) - int(alpha * len(score))
    return torch.argsort(score)[:n_kept]


def _fit(p, u, generator) -> tuple[torch.Tensor, float]:
    """Logits [n_u] of u after the last epoch, and its alpha."""
    network = mlp([u.shape[1], *HIDDEN, 1], generator)
    optimizer = torch.optim.SGD(
        network.parameters(), LEARNING_RATE, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY
    )
    (train_p, held_p), (train_u, held_u) = (
        held_out(len(rows), HELD_OUT, generator) for rows in (p, u)
    )
    train_p, held_p, train_u, held_u = p[train_p], p[held_p], u[train_u], u[held_u]
    n_steps = max(len(train_u) // BATCH_SIZE, 1)
    feed_p = batches(train_p, BATCH_SIZE, generator)

    def epoch(negatives: torch.Tensor) -> None:
        feed_n = batches(negatives, BATCH_SIZE, generator)
        for _ in range(n_steps):
            _step(network, optimizer, next(feed_p), next(feed_n))

    def estimate() -> float:
        return best_bin(_scores(network, held_p).numpy(), _scores(network, held_u).numpy())

    for _ in range(WARM_START):
        epoch(train_u)
    alpha = estimate()
    for _ in range(EPOCHS):
        kept = kept_by_cvir(_scores(network, train_u), alpha)
        if len(kept):
            epoch(train_u[kept])
        alpha = estimate()
    return _scores(network, u), alpha


def _scores(network: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return network(rows)[:, 0]


def _step(network, optimizer, positives: torch.Tensor, negatives: torch.Tensor) -> None:
    """One step on the mean of the two classes' cross-entropies."""
    logit = network(torch.cat([positives, negatives]))[:, 0]
    logit_p, logit_n = logit.split([len(positives), len(negatives)])
    loss = (
        cross_entropy(logit_p, torch.ones_like(logit_p))
        + cross_entropy(logit_n, torch.zeros_like(logit_n))
    ) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
