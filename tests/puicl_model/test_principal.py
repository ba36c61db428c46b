"""The scalings "principal", "principal_quantile", "principal_uniform": principal axes."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier
from puicl_model.preprocessing import fit_scaling, principal
from puicl_model.preprocessing.principal import PRINCIPAL
from puicl_model.separation import separation

N = 300
both_kinds = pytest.mark.parametrize("kind", PRINCIPAL)


def correlated(rng, n=N):
    return rng.normal(size=(n, 4)) @ rng.normal(size=(4, 4)) * [1, 1e6, 1e-6, 3] + 5


@both_kinds
def test_axes_are_uncorrelated_with_variance_one_in_falling_order_of_variance(kind):
    x = correlated(np.random.default_rng(0))
    z = (x - x.mean(0)) / x.std(0)
    axes = fit_scaling(x, kind)
    np.testing.assert_allclose(np.cov(axes(x).T, ddof=0), np.eye(4), atol=0.02)  # shortened tails
    shared = np.abs(np.corrcoef(axes(x).T, z.T)[:4, 4:]).sum(axis=1)
    assert list(np.argsort(-shared)) == [0, 1, 2, 3]
    levels = np.column_stack([x[:, 0], np.arange(N) % 10 == 0, np.arange(N) % 7])
    axes = fit_scaling(levels, kind)(levels)  # of columns that a scaling leaves uneven
    np.testing.assert_allclose(np.cov(axes.T, ddof=0), np.eye(3), atol=0.02)


@both_kinds
def test_as_many_axes_are_kept_as_are_asked_for(kind):
    x = correlated(np.random.default_rng(0))
    whole = fit_scaling(x, kind)(x)
    for most in (1, 2, 99):
        some = fit_scaling(x, kind, most_axes=most)
        assert some.width == min(most, whole.shape[1])
        np.testing.assert_array_equal(some(x), whole[:, :most])


def test_what_near_copies_do_not_share_has_an_axis_of_its_own():
    rng = np.random.default_rng(0)
    common, difference = rng.normal(size=N), rng.normal(size=N)
    x = np.column_stack([common + 0.02 * difference, common - 0.02 * difference])
    last = fit_scaling(x, "principal")(x)[:, 1]
    assert abs(np.corrcoef(last, difference)[0, 1]) > 0.99


@both_kinds
def test_copies_and_constants_have_no_axis(kind):
    x = np.random.default_rng(0).normal(size=(N, 2))
    assert fit_scaling(np.column_stack([x, x[:, 0], np.ones(N)]), kind).width == 2
    assert fit_scaling(np.ones((N, 3)), kind)(np.ones((5, 3))).shape == (5, 1)
    assert fit_scaling(np.ones((4, 1100)), kind)(np.ones((5, 1100))).shape == (5, 1)
    few = np.random.default_rng(0).normal(size=(4, 9))
    assert fit_scaling(few, kind).width == 3


@both_kinds
@pytest.mark.parametrize("levels", [2, 3, 5])
def test_the_order_of_rows_changes_nothing_even_where_axes_are_ambiguous(levels, kind):
    """Equally common levels are equally correlated: any basis of their plane would do."""
    rng = np.random.default_rng(0)
    x = np.eye(levels)[np.arange(60 * levels) % levels]
    x = np.column_stack([x, rng.permutation(x)])
    order = rng.permutation(len(x))
    np.testing.assert_allclose(
        fit_scaling(x, kind)(x)[order],
        fit_scaling(x[order], kind)(x[order]),
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", ["principal_quantile", "principal_uniform"])
def test_the_order_of_rows_changes_nothing_where_columns_have_no_correlation(kind):
    """Which comes out as 0.0 in one order and as -0.0 in another."""
    x = np.array(
        [[1, 1, 1, 1], [1, 0, 0, 1], [1, 3, 0, 1], [1, 3, 0, 1], [0, 1, 0, 1], [1, 0, 0, 0]]
    )
    expected = fit_scaling(x, kind)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(x))
        found = fit_scaling(x[order], kind)
        np.testing.assert_allclose(found(x), expected(x), atol=1e-6)


@both_kinds
def test_a_row_is_seen_alike_alone_and_among_others(kind):
    x = correlated(np.random.default_rng(0))
    axes, new = fit_scaling(x, kind), correlated(np.random.default_rng(1), 50)
    together = axes(new)
    for i in range(50):
        np.testing.assert_array_equal(axes(new[i : i + 1])[0], together[i])


@both_kinds
def test_a_class_in_the_difference_of_two_columns_is_found(tmp_path, kind):
    """Sizes of animals: nearly proportional to each other, told apart by small differences."""
    rng = np.random.default_rng(0)
    truth = np.arange(400) < 200
    size, shape = rng.normal(size=400), np.where(truth, 1.0, -1.0) + 0.5 * rng.normal(size=400)
    table = pd.DataFrame({f"m{k}": size + 0.02 * sign * shape for k, sign in enumerate((1, -1, 1))})
    s = (np.arange(400) < 80).astype(int)
    fitted = PUICLClassifier(n_estimators=1, scalings=(kind,)).fit(table, s)
    assert roc_auc_score(truth[80:], fitted.unlabeled_proba_) > 0.97
    path = tmp_path / "fitted.safetensors"
    fitted.save(path)
    again = PUICLClassifier.load(path)
    new = table + 0.001
    np.testing.assert_array_equal(again.predict_proba(new), fitted.predict_proba(new))
    assert sorted(fitted.column_orders_[0]) == list(range(len(fitted.column_orders_[0])))


@pytest.mark.parametrize("kind", ["principal_quantile", "principal_uniform"])
def test_axes_of_columns_by_rank_do_not_ask_for_units_or_skewness(kind):
    x = correlated(np.random.default_rng(0)) * [1, 1e-6, 1e6, 1]
    bent = np.column_stack([np.exp(x[:, 0]), x[:, 1] ** 3, x[:, 2], 5 - 2 * x[:, 3]])
    plain, other = (fit_scaling(table, kind)(table) for table in (x, bent))
    np.testing.assert_allclose(np.abs(plain), np.abs(other), atol=1e-4)
    plain, other = (fit_scaling(table, "principal")(table) for table in (x, bent))
    assert np.abs(np.abs(plain) - np.abs(other)).max() > 0.5


def test_many_columns_have_the_axes_of_their_correlations_without_these(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 90)) @ rng.normal(size=(90, 90))
    slow = fit_scaling(x, "principal")
    monkeypatch.setattr(principal, "_MANY_COLUMNS", 80)
    fast = fit_scaling(x, "principal")
    assert fast.width == slow.width == 39
    np.testing.assert_allclose(fast(x), slow(x), atol=1e-4)


def test_20000_columns_are_read_without_their_square():
    x = np.random.default_rng(0).normal(size=(40, 20_000))
    s = np.arange(40) < 12
    tracemalloc.start()
    axes, apart = fit_scaling(x, "principal"), separation(x, s)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert axes.width == 39
    assert 0 <= apart <= 1
    assert peak < 40 * x.nbytes < 20_000**2 * 8 / 10
