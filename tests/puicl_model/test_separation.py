import numpy as np
from scipy.stats import norm

from puicl_model.separation import _solved, separation


def test_rows_without_a_difference_have_an_auc_about_a_half_even_in_many_columns():
    rng = np.random.default_rng(0)
    for n, w in ((60, 40), (400, 5), (9000, 3)):
        assert abs(separation(rng.normal(size=(n, w)), np.arange(n) % 3 == 0) - 0.5) < 0.12


def test_of_many_rows_evenly_spaced_ones_tell():
    # A table sorted by time: its first rows are alike, and the later ones are not.
    labeled = np.arange(9000) % 2 == 0
    x = np.random.default_rng(0).normal(size=(9000, 2))
    x[5000:] += 10 * labeled[5000:, None]
    assert separation(x, labeled) > 0.65


def test_it_is_the_auc_of_the_best_direction_of_two_bell_curves_whatever_the_columns_units():
    rng = np.random.default_rng(0)
    labeled = np.arange(3000) % 2 == 0
    x = rng.normal(size=(3000, 2)) + labeled[:, None]
    expected = norm.cdf(np.sqrt(2) / np.sqrt(2))  # sqrt(2) apart
    assert abs(separation(x, labeled) - expected) < 0.015
    moved = x * [1e200, 1e-200] + [0, 3e-199]
    assert abs(separation(moved, labeled) - separation(x, labeled)) < 1e-12


def test_a_share_a_of_positives_among_the_unlabelled_bounds_it():
    """At most 1 - a / 2, even where positives and negatives lie far apart."""
    rng = np.random.default_rng(0)
    for share in (0.1, 0.4):
        positive = np.arange(2000) < 500 + share * 1500
        x = rng.normal(size=(2000, 2)) + 20 * positive[:, None]
        found = separation(x, np.arange(2000) < 500)
        assert 1 - share / 2 - 0.03 < found < 1 - share / 2 + 0.03


def test_constant_columns_are_no_trouble_and_too_few_rows_are_no_number():
    labeled = np.arange(30) < 10
    x = np.column_stack([np.ones(30), np.random.default_rng(0).normal(size=30) + 9 * labeled])
    assert separation(x, labeled) == 1
    assert separation(np.ones((30, 2)), labeled) == 0.5
    assert np.isnan(separation(x, np.arange(30) < 4))


def test_more_columns_than_rows_have_the_direction_that_their_covariance_gives():
    rng = np.random.default_rng(0)
    within, apart = rng.normal(size=(30, 50)), rng.normal(size=50)
    covariance = within.T @ within / 30 + 0.01 * np.eye(50)
    np.testing.assert_allclose(_solved(within, apart), np.linalg.solve(covariance, apart))


def test_five_rows_of_a_class_are_enough_to_tell():
    x = np.random.default_rng(0).normal(size=(30, 2))
    assert np.isnan(separation(x, np.arange(30) < 4))
    assert 0 <= separation(x, np.arange(30) < 5) <= 1
