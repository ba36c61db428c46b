"""The classification risk from P, U and a class prior: uPU's, nnPU's and PUSB's estimators."""

from collections.abc import Callable

import torch
from torch.nn.functional import softplus

Loss = Callable[[torch.Tensor], torch.Tensor]


def sigmoid_loss(z: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(z)) of the margins z, the loss of Kiryo et al.'s experiments."""
    return torch.sigmoid(-z)


def logistic_loss(z: torch.Tensor) -> torch.Tensor:
    """log(1 + exp(-z)) of the margins z."""
    return softplus(-z)


def positive_and_negative_risk(
    g_p: torch.Tensor, g_u: torch.Tensor, alpha: float, loss: Loss
) -> tuple[torch.Tensor, torch.Tensor]:
    """alpha * R_p^+ and R_u^- - alpha * R_p^-: the two classes' parts of the risk.

    g_p: [n_p], g_u: [n_u] decision values; R_p^+ is the mean loss(g) over P, R_p^- and R_u^- the
    mean loss(-g) over P and U.
    """
    return alpha * loss(g_p).mean(), loss(-g_u).mean() - alpha * loss(-g_p).mean()


def unbiased_risk(g_p, g_u, alpha, loss) -> torch.Tensor:
    """uPU: alpha R_p^+ + R_u^- - alpha R_p^- (du Plessis, Niu and Sugiyama, ICML 2015)."""
    positive, negative = positive_and_negative_risk(g_p, g_u, alpha, loss)
    return positive + negative


def non_negative_objective(g_p, g_u, alpha, loss) -> torch.Tensor:
    """What nnPU descends on (Kiryo et al., NeurIPS 2017, Algorithm 1 with beta = 0, gamma = 1).

    The unbiased risk; on a batch where the negatives' part is below zero, minus that part, whose
    gradient takes back what the batch has been overfitted.
    """
    positive, negative = positive_and_negative_risk(g_p, g_u, alpha, loss)
    return -negative if negative.item() < 0 else positive + negative
