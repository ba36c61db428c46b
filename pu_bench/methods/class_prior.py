"""The share of positives among the unlabelled rows, alpha, estimated from P and U."""

import math

import numpy as np
from scipy.optimize import nnls

from pu_bench.methods.crossfit import ExtraTrees, cross_fitted
from pu_bench.methods.rows import standardized

DELTA, GAMMA = 0.1, 0.01
WIDTHS = np.logspace(-1, 1, 5)
LAMBDA_MAX, LAMBDA_STEP = 8.0, 0.04


def best_bin(score_p: np.ndarray, score_u: np.ndarray) -> float:
    """Best-bin estimate of alpha from held-out scores of P [n_p] and U [n_u], higher = positive.

    Garg, Wu, Smola, Balakrishnan and Lipton, NeurIPS 2021, Algorithm 1: with q(c) the share of
    rows that score at least c, the estimate is q_u(c) / q_p(c) at the threshold c that minimises
    its upper confidence bound, q_u / q_p + (1 + gamma) / q_p * (sqrt(log(1/delta) / 2 n_u) +
    sqrt(log(1/delta) / 2 n_p)), with gamma = .01, delta = .1. (log(1/delta) as in the authors'
    program; their text has log(4/delta).) Thresholds are the scores themselves.
    """
    thresholds = np.unique(np.concatenate([score_p, score_u]))
    q_p = _share_from(thresholds, score_p)
    q_u = _share_from(thresholds, score_u)
    seen = q_p > 0
    slack = sum(math.sqrt(math.log(1 / DELTA) / (2 * len(s))) for s in (score_p, score_u))
    bound = (q_u[seen] + (1 + GAMMA) * slack) / q_p[seen]
    best = int(np.argmin(bound))
    # At most 1: where q_u is above q_p, the bound is above that of the lowest score.
    return float(q_u[seen][best] / q_p[seen][best])


def best_bin_estimate(P: np.ndarray, U: np.ndarray, seed: int) -> float:
    """`best_bin` on out-of-fold scores of trees that tell P [n_p, d] from U [n_u, d]."""
    return best_bin(*cross_fitted(ExtraTrees().classifier, P, U, seed))


def km2(P: np.ndarray, U: np.ndarray) -> float:
    """Kernel mean estimate KM2 of alpha from P [n_p, d] and U [n_u, d].

    Ramaswamy, Scott and Tewari, ICML 2016: d(lambda) is the distance, in the space of a Gaussian
    kernel, of lambda * mean(U) + (1 - lambda) * mean(P) from the distributions on the rows; it
    begins to rise where that is no distribution any more, lambda* = 1 / (1 - alpha). KM2 takes the
    lambda where its slope passes .8 of its slope at 1 plus .2 of the distance between P and U, to
    which it rises. (KM1's threshold is 1 / sqrt(min(n_p, n_u)): the authors' program computes
    KM2's first and calls it 1, and returns the two the other way round.) As in that program, the
    kernel's width is the one of 5 around the median distance that sets P and U furthest apart, and
    lambda is bisected in [1, 8] down to .04. Columns are standardised.
    """
    P, U = standardized(P, U)
    rows = np.concatenate([U, P])
    is_u = np.arange(len(rows)) < len(U)
    mean_u, mean_p = is_u / len(U), ~is_u / len(P)
    kernel, distance = _widest_kernel(rows, mean_u - mean_p)
    if distance == 0.0:
        return 1.0

    factor = factored(kernel)

    def d(position: float) -> float:
        """The distance at lambda = `position`."""
        return math.sqrt(squared_distance(factor, position * mean_u + (1 - position) * mean_p))

    threshold = 0.8 * (d(1.05) - d(1.0)) / 0.05 + 0.2 * distance
    left, right = 1.0, LAMBDA_MAX
    while right - left > LAMBDA_STEP:
        middle = (left + right) / 2
        slope = (d(middle + LAMBDA_STEP / 2) - d(middle)) / (LAMBDA_STEP / 2)
        left, right = (left, middle) if slope > threshold else (middle, right)
    return 1 - 2 / (left + right)


def squared_distance(factor: np.ndarray, u: np.ndarray) -> float:
    """min over distributions v of |A (u - v)|^2, for A = `factor` [r, n] and u [n] that sums to 1.

    Non-negative least squares (Lawson and Hanson's active set, exact), with sum(v) = 1 as one
    more row of great weight.
    """
    weight = 30 * np.sqrt((factor**2).sum(axis=0).max())
    rows = np.vstack([factor, np.full(len(u), weight)])
    v, _ = nnls(rows, np.append(factor @ u, weight), maxiter=50 * len(u))
    return float(((factor @ (u - v / v.sum())) ** 2).sum())


def factored(kernel: np.ndarray) -> np.ndarray:
    """A [r, n] with A'A = kernel [n, n], but for eigenvalues below 1e-9 of the largest."""
    values, vectors = np.linalg.eigh(kernel)
    kept = values > 1e-9 * values[-1]
    return (vectors[:, kept] * np.sqrt(values[kept])).T


def _share_from(thresholds: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Share of `score` at or above each threshold."""
    return 1 - np.searchsorted(np.sort(score), thresholds, side="left") / len(score)


def _widest_kernel(rows: np.ndarray, difference: np.ndarray) -> tuple[np.ndarray, float]:
    """Gaussian kernel of the rows that sets P and U furthest apart, and their distance in it."""
    norms = (rows**2).sum(axis=1)
    squared = np.maximum(norms[:, np.newaxis] + norms - 2 * rows @ rows.T, 0.0)
    median = np.median(squared)
    best = np.ones_like(squared), 0.0
    for width in WIDTHS:
        kernel = np.exp(-squared / (2 * width**2 * max(median, 1e-12)))
        distance = math.sqrt(max(difference @ kernel @ difference, 0.0))
        if distance > best[1]:
            best = kernel, distance
    return best
