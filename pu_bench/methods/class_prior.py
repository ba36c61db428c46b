"""The share of positives among the unlabelled rows, alpha, estimated from P and U."""

import math

import numpy as np

from pu_bench.methods.crossfit import ExtraTrees, cross_fitted
from pu_bench.methods.rows import standardized

DELTA, GAMMA = 0.1, 0.01
WIDTHS = np.logspace(-1, 1, 5)
LAMBDA_MAX, LAMBDA_STEP = 8.0, 0.04
MAX_STEPS = 2000


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
    return float(min(q_u[seen][best] / q_p[seen][best], 1.0))


def best_bin_estimate(P: np.ndarray, U: np.ndarray, seed: int) -> float:
    """`best_bin` on out-of-fold scores of trees that tell P [n_p, d] from U [n_u, d]."""
    return best_bin(*cross_fitted(ExtraTrees().classifier, P, U, seed))


def km2(P: np.ndarray, U: np.ndarray) -> float:
    """Kernel mean estimate KM2 of alpha from P [n_p, d] and U [n_u, d].

    Ramaswamy, Scott and Tewari, ICML 2016: d(lambda) is the distance, in the space of a Gaussian
    kernel, of lambda * mean(U) + (1 - lambda) * mean(P) from the distributions on the rows; it
    begins to rise where that is no distribution any more, lambda* = 1 / (1 - alpha). KM2 takes the
    lambda where its slope passes 1 / sqrt(min(n_p, n_u)). As in the authors' program, the kernel's
    width is the one of 5 around the median distance that sets P and U furthest apart, lambda is
    bisected in [1, 8] down to .04, and where that threshold is above .9 of the distance between P
    and U, KM1's threshold takes its place. Columns are standardised.
    """
    P, U = standardized(P, U)
    rows = np.concatenate([U, P])
    is_u = np.arange(len(rows)) < len(U)
    mean_u, mean_p = is_u / len(U), ~is_u / len(P)
    kernel, distance = _widest_kernel(rows, mean_u - mean_p)
    if distance == 0.0:
        return 1.0

    def d(position: float) -> float:
        """The distance at lambda = `position`."""
        return math.sqrt(squared_distance(kernel, position * mean_u + (1 - position) * mean_p))

    threshold = 1 / math.sqrt(min(len(P), len(U)))
    if threshold > 0.9 * distance:
        threshold = 0.8 * (d(1.05) - d(1.0)) / 0.05 + 0.2 * distance
    left, right = 1.0, LAMBDA_MAX
    while right - left > LAMBDA_STEP:
        middle = (left + right) / 2
        slope = (d(middle + LAMBDA_STEP / 2) - d(middle)) / (LAMBDA_STEP / 2)
        left, right = (left, middle) if slope > threshold else (middle, right)
    return 1 - 2 / (left + right)


def squared_distance(kernel: np.ndarray, u: np.ndarray, tolerance: float = 1e-3) -> float:
    """min over distributions v of (u - v)' K (u - v), for u [n] that sums to 1; K [n, n].

    Accelerated projected gradient with restarts, until the duality gap, an upper bound of what is
    left to gain, is below `tolerance` times the value (or below 1e-8).
    """
    v = project_to_simplex(u)
    ahead, momentum = v, 1.0
    step = 1.0 / np.abs(kernel).sum(axis=1).max()  # the largest eigenvalue is at most that
    image_u, image_v = kernel @ u, kernel @ v
    image_ahead = image_v
    for _ in range(MAX_STEPS):
        new = project_to_simplex(ahead - step * (image_ahead - image_u))
        image_new = kernel @ new
        gradient = image_new - image_u
        value = max(float((new - u) @ gradient), 0.0)
        if 2 * (gradient @ new - gradient.min()) < max(tolerance * value, 1e-8):
            return value
        if (ahead - new) @ (new - v) > 0:
            momentum = 1.0
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        pull = (momentum - 1) / following
        ahead = new + pull * (new - v)
        image_ahead = image_new + pull * (image_new - image_v)
        v, image_v, momentum = new, image_new, following
    return value


def project_to_simplex(v: np.ndarray) -> np.ndarray:
    """The distribution nearest to v [n] (Duchi et al., ICML 2008, Figure 1)."""
    descending = np.sort(v)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(v) + 1)
    return np.maximum(v - excess[np.flatnonzero(descending > excess)[-1]], 0.0)


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
