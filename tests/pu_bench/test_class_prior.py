import math

import numpy as np
import pytest
from scipy.optimize import minimize

from pu_bench.methods.class_prior import (
    best_bin,
    best_bin_estimate,
    factored,
    km2,
    squared_distance,
)
from pu_bench.methods.rows import standardized


def two_gaussians(alpha: float, n_p: int, n_u: int, seed: int, shift: float = 2.5):
    """Positives N(0, I), negatives N(shift, I) in the plane; a share alpha of U is positive."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_u) < round(alpha * n_u)
    u = rng.normal(size=(n_u, 2)) + np.where(y, 0.0, shift)[:, np.newaxis]
    return rng.normal(size=(n_p, 2)), u


def test_best_bin_is_the_ratio_of_shares_at_the_lowest_upper_bound():
    score_p = np.array([0.9, 0.8, 0.7, 0.6])
    score_u = np.array([0.95, 0.65, 0.3, 0.2, 0.1])
    slack = sum(np.sqrt(np.log(10) / (2 * n)) for n in (4, 5))
    bounds, ratios = [], []
    for c in sorted({*score_p, *score_u}):
        q_p, q_u = (score_p >= c).mean(), (score_u >= c).mean()
        if q_p > 0:
            bounds.append(q_u / q_p + 1.01 * slack / q_p)
            ratios.append(q_u / q_p)
    assert best_bin(score_p, score_u) == pytest.approx(ratios[int(np.argmin(bounds))])
    # by hand: at .6 all of P and two of five unlabelled rows are in
    assert best_bin(score_p, score_u) == pytest.approx(0.4)


def test_best_bin_is_at_most_one_and_one_where_the_scores_say_nothing():
    score = np.linspace(0, 1, 50)
    assert best_bin(score, score) == 1.0
    assert best_bin(np.zeros(10), np.ones(10)) == 1.0
    rng = np.random.default_rng(0)
    for n_p, n_u in ((3, 500), (500, 3), (40, 60)):  # U above P
        assert 0.8 < best_bin(rng.normal(size=n_p), rng.normal(3, 1, n_u)) <= 1.0


@pytest.mark.parametrize("alpha", [0.3, 0.7])
def test_best_bin_estimate_recovers_the_share_of_positives(alpha):
    P, U = two_gaussians(alpha, 300, 600, seed=1)
    assert best_bin_estimate(P, U, 0) == pytest.approx(alpha, abs=0.1)


@pytest.mark.parametrize("alpha", [0.3, 0.7])
def test_km2_recovers_the_share_of_positives(alpha):
    P, U = two_gaussians(alpha, 200, 400, seed=2)
    assert km2(P, U) == pytest.approx(alpha, abs=0.1)


def test_km2_is_where_the_slope_passes_a_fifth_of_the_way_from_its_start_to_the_distance():
    """And not where it passes KM1's threshold, 1 / sqrt(20), which is elsewhere here."""
    P, U = standardized(*two_gaussians(0.6, 20, 60, seed=3, shift=1.5))
    rows = np.concatenate([U, P])
    from_u = np.repeat([1 / 60, 0.0], [60, 20])
    from_p = np.repeat([0.0, 1 / 20], [60, 20])
    squared = ((rows[:, None] - rows) ** 2).sum(-1)
    kernels = [np.exp(-squared / (2 * w**2 * np.median(squared))) for w in np.logspace(-1, 1, 5)]
    kernel = max(kernels, key=lambda k: (from_u - from_p) @ k @ (from_u - from_p))
    distance = math.sqrt((from_u - from_p) @ kernel @ (from_u - from_p))

    def d(at):
        return math.sqrt(squared_distance(factored(kernel), at * from_u + (1 - at) * from_p))

    threshold = 0.8 * (d(1.05) - d(1.0)) / 0.05 + 0.2 * distance
    found = 1 / (1 - km2(P, U))
    slopes = [(d(at + 0.02) - d(at)) / 0.02 for at in (found - 0.04, found + 0.04)]
    assert slopes[0] <= threshold <= slopes[1]
    assert not slopes[0] <= 1 / math.sqrt(20) <= slopes[1]


def test_km2_does_not_depend_on_the_units_of_the_columns():
    P, U = two_gaussians(0.5, 30, 60, seed=4)
    units = np.array([2.0**12, 2.0**-6])
    assert km2(P * units, U * units) == km2(P, U)


def test_km2_takes_rows_without_any_difference_for_all_positive():
    assert km2(np.zeros((10, 2)), np.zeros((20, 2))) == 1.0


def test_the_nearest_distribution_is_the_one_a_general_solver_finds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 2))
    kernel = np.exp(-((x[:, None] - x) ** 2).sum(-1) / 2)
    u = np.concatenate([np.full(6, 2.0 / 6), np.full(6, -1.0 / 6)])
    solved = minimize(
        lambda v: (u - v) @ kernel @ (u - v),
        np.full(12, 1 / 12),
        jac=lambda v: 2 * kernel @ (v - u),
        bounds=[(0, None)] * 12,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert solved.success
    assert squared_distance(factored(kernel), u) == pytest.approx(solved.fun, rel=1e-3)
    inside = np.full(12, 1 / 12)
    assert squared_distance(factored(kernel), inside) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_that_best_bin_minimises_is_the_papers(seed):
    rng = np.random.default_rng(seed)
    score_p, score_u = rng.normal(1, 1, 30), rng.normal(0, 1.5, 70)
    slack = sum(math.sqrt(math.log(1 / 0.1) / (2 * n)) for n in (30, 70))

    def bound(c):
        q_p, q_u = (score_p >= c).mean(), (score_u >= c).mean()
        return q_u / q_p + 1.01 / q_p * slack, q_u / q_p

    seen = [c for c in {*score_p, *score_u} if c <= score_p.max()]
    assert best_bin(score_p, score_u) == pytest.approx(min(1.0, min(map(bound, seen))[1]))
