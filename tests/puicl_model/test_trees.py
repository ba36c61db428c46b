import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesClassifier

from puicl_model.trees import Blend, Forest, cross_fitted


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x[:, 0] * x[:, 1] > 0) & (rng.random(n) < 0.5)


def test_trees_as_arrays_answer_as_scikit_learns_do():
    x, y = table()
    forests = [ExtraTreesClassifier(20, random_state=i).fit(x, y) for i in range(3)]
    new, _ = table(seed=1)
    expected = np.mean([forest.predict_proba(new)[:, 1] for forest in forests], axis=0)
    np.testing.assert_allclose(Forest.of(forests)(new), expected, atol=1e-12)


def test_a_row_is_scored_by_trees_that_have_not_seen_it():
    """Trees remember rows: on noise, their own rows' labels, but not those of rows held out."""
    x, labeled = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 4 == 0
    scores, forest = cross_fitted(x, labeled, np.random.default_rng(0))
    remembered = forest(x)[labeled].mean() - forest(x)[~labeled].mean()
    assert remembered > 0.015
    assert scores[labeled].mean() - scores[~labeled].mean() < 0


def test_cross_fitting_is_a_function_of_its_generator():
    x, labeled = table()
    first, second = (cross_fitted(x, labeled, np.random.default_rng(3))[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_too_few_rows_to_cross_fit_are_refused():
    x, _ = table(5)
    with pytest.raises(ValueError, match="two labelled and two unlabelled"):
        cross_fitted(x, np.arange(5) < 1, np.random.default_rng(0))


def test_the_blend_orders_by_weighted_mean_rank_and_keeps_the_networks_log_odds():
    rng = np.random.default_rng(0)
    network, trees = rng.normal(size=200), rng.random(200)
    blend = Blend(network, trees)
    mixed = 4 * rankdata(network) + rankdata(trees)
    order = np.argsort(mixed, kind="stable")
    assert (np.diff(blend.fitted[order]) >= 0).all()
    assert (np.diff(blend.fitted[order])[np.diff(mixed[order]) > 0] > 0).all()
    np.testing.assert_allclose(blend.fitted.mean(), network.mean(), atol=0.01)
    assert blend.fitted.min() >= network.min()
    assert blend.fitted.max() <= network.max()


def test_the_blend_scores_new_rows_each_by_itself_and_old_ones_as_before():
    rng = np.random.default_rng(0)
    network, trees = rng.normal(size=200), rng.random(200)
    blend = Blend(network, trees)
    np.testing.assert_array_equal(blend(network, trees), blend.fitted)
    new = rng.normal(size=50), rng.random(50)
    one_by_one = [blend(new[0][i : i + 1], new[1][i : i + 1])[0] for i in range(50)]
    np.testing.assert_array_equal(blend(*new), one_by_one)
    assert (blend(new[0] + 1, new[1]) >= blend(*new)).all()
