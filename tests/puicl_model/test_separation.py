import numpy as np
import pytest
from scipy.stats import norm

from puicl_model.separation import _solved, copies, separation, telltale


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


def test_the_telltale_is_the_value_that_leaves_the_smallest_share_of_positives():
    s = np.arange(500) < 100
    fair = np.arange(500) % 2.0
    note = np.where(np.arange(500) < 40, 3.0, fair)  # in 40 labelled rows alone
    found = telltale(np.column_stack([fair, note, np.arange(500)]), s)
    assert (found.column, found.n_labeled, found.n_unlabeled) == (1, 40, 0)
    # No more than 3 in 400 by chance in one of twenty cases, over no less than .3175 of them.
    assert found.at_most == pytest.approx(-np.log(0.05) / 400 / 0.3175, rel=1e-3)
    note[450:455] = 3.0  # as many unlabelled rows as leave more
    more = telltale(np.column_stack([fair, note]), s)
    assert (more.n_labeled, more.n_unlabeled) == (40, 5)
    assert more.at_most > 3 * found.at_most
    assert telltale(np.arange(500.0)[:, None], s) is None


def test_of_a_fair_sample_no_value_leaves_fewer_positives_than_there_are():
    rng = np.random.default_rng(0)
    beyond = 0
    for _ in range(40):
        y = rng.random(600) < 0.3
        X = np.column_stack(
            [rng.poisson(2.0 + y), rng.normal(size=600).round(1), y | (rng.random(600) < 0.2)]
        )
        s = y & (rng.random(600) < 0.4)
        beyond += telltale(X, s).at_most < y[~s].mean()
    assert beyond <= 4


def test_copies_are_labelled_rows_that_repeat_others_and_no_unlabelled_one():
    x = np.random.default_rng(0).normal(size=(40, 3))
    labeled = np.arange(40) < 10
    assert copies(x, labeled) == 0
    twice = np.concatenate([x, x[:4], x[:4]])
    assert copies(twice, np.concatenate([labeled, np.ones(8, bool)])) == 8
    assert copies(twice, np.concatenate([labeled, np.ones(4, bool), np.zeros(4, bool)])) == 0
    assert copies(np.concatenate([x, x[30:]]), np.concatenate([labeled, np.zeros(10, bool)])) == 0
    for n_unlabeled, found in ((4, 4), (10, 0)):  # copies of others, too, as joined tables have
        joined = np.concatenate([x, x[:4], x[10 : 10 + n_unlabeled]])
        of_joined = np.concatenate([labeled, np.ones(4, bool), np.zeros(n_unlabeled, bool)])
        assert copies(joined, of_joined) == found
