import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier
from puicl_model.files.report_page import report_page
from puicl_model.trees import Blend, Forest, cross_fitted, taught_by


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    return x, (x[:, 0] * x[:, 1] > 0) & (rng.random(n) < 0.5)


def test_trees_as_arrays_answer_as_scikit_learns_do():
    x, y = table()
    answers = np.where(y, 1.0, np.random.default_rng(0).random(len(y)))
    forests = [ExtraTreesRegressor(20, random_state=i).fit(x, answers) for i in range(3)]
    new, _ = table(seed=1)
    expected = np.mean([forest.predict(new) for forest in forests], axis=0)
    np.testing.assert_allclose(Forest.of(forests)(new), expected, atol=1e-12)


def test_a_row_is_scored_by_trees_that_have_not_seen_it():
    """Trees remember rows: on noise, their own rows' labels, but not those of rows held out."""
    x, labeled = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 4 == 0
    scores, forest = cross_fitted(x, labeled, labeled, np.random.default_rng(0))
    remembered = forest(x)[labeled].mean() - forest(x)[~labeled].mean()
    assert remembered > 0.015
    assert scores[labeled].mean() - scores[~labeled].mean() < 0


def test_cross_fitting_is_a_function_of_its_generator():
    x, labeled = table()
    first, second = (
        cross_fitted(x, labeled, labeled, np.random.default_rng(3))[0] for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_too_few_rows_to_cross_fit_are_refused():
    x, _ = table(5)
    with pytest.raises(ValueError, match="two labelled and two unlabelled"):
        cross_fitted(x, np.arange(5) < 1, np.zeros(5), np.random.default_rng(0))


def test_trees_taught_by_the_network_smooth_what_it_says_of_the_row():
    """A network that knows the rule, noisily, is ranked above by trees that average its noise.

    Trees that tell labelled from unlabelled rows know less of it, too.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4))
    y = x[:, 0] + x[:, 1] ** 2 > 0.7
    labeled = y & (rng.random(600) < 0.3)
    log_odds = (4 * y - 2 + 3 * rng.normal(size=600))[~labeled]
    answers = taught_by(log_odds, labeled)
    assert (answers[labeled] == 1).all()
    np.testing.assert_allclose(np.log(answers / (1 - answers + 1e-300))[~labeled], log_odds)

    def auc(scores):
        return roc_auc_score(y[~labeled], scores)

    taught, told = (
        cross_fitted(x, labeled, what, np.random.default_rng(1))[0][~labeled]
        for what in (answers, labeled)
    )
    assert auc(taught) > auc(log_odds) + 0.05
    assert auc(taught) > auc(told) + 0.02


def page(fitted, x):
    scores = pd.DataFrame({"row": np.arange(len(x))}).assign(p_positive=np.nan)
    scores.loc[fitted.unlabeled_rows_, "p_positive"] = fitted.unlabeled_proba_
    return report_page(fitted, pd.DataFrame(x), scores, None, "t.csv", [])


def test_the_blend_leaves_tables_of_levels_alone_to_the_network(weights):
    """A table that has one column of more than ten values is blended, and its page says so."""
    rng = np.random.default_rng(0)
    x, s = rng.integers(0, 10, size=(90, 3)).astype(float), np.arange(90) % 3 == 0
    alone = PUICLClassifier(weights, n_estimators=2, random_state=0).fit(x, s)
    blended = PUICLClassifier(weights, n_estimators=2, random_state=0, blend="trees").fit(x, s)
    np.testing.assert_array_equal(blended.unlabeled_proba_, alone.unlabeled_proba_)
    new = rng.integers(0, 10, size=(30, 3)).astype(float)
    np.testing.assert_array_equal(blended.predict_proba(new), alone.predict_proba(new))
    assert "trees" not in page(blended, x)
    x[:, 0] = rng.normal(size=90)
    assert "blended by rank with trees" in page(blended.fit(x, s), x)
    assert (blended.unlabeled_proba_ != alone.fit(x, s).unlabeled_proba_).any()


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
