import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from puicl_model import trees
from puicl_model.trees import Forest, cross_fitted, thin


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
    np.testing.assert_allclose(Forest.of(forests, np.zeros(4))(new), expected, atol=1e-12)


def test_a_row_at_a_threshold_goes_left_as_in_scikit_learn():
    forest = Forest(
        roots=np.array([0]),
        left=np.array([1, -1, -1]),
        right=np.array([2, -1, -1]),
        feature=np.array([0, -2, -2]),
        threshold=np.array([0.5, 0, 0]),
        share=np.array([0.4, 0.1, 0.9]),
        origin=np.zeros(1),
    )
    np.testing.assert_array_equal(forest(np.array([[0.5], [0.75]])), [0.1, 0.9])


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


def test_values_that_float32_would_merge_are_told_apart():
    """Moments of one morning, in days since 1970, say: such columns are read from their middle."""
    x, labeled = table()
    x = np.round(x * 64) / 2**18  # so that moving them is exact
    far = x + np.array([20_000, 0, 2**30, -(2**20)])
    assert len(np.unique(far[:, 2].astype(np.float32))) == 1
    pairs = (cross_fitted(each, labeled, labeled, np.random.default_rng(3)) for each in (x, far))
    (scores, forest), (far_scores, far_forest) = pairs
    np.testing.assert_array_equal(forest.origin, 0)
    np.testing.assert_array_equal(far_forest.origin != 0, [True, False, True, True])
    assert np.corrcoef(scores, far_scores)[0, 1] > 0.97
    np.testing.assert_allclose(far_forest(far).mean(), forest(x).mean(), atol=0.01)


def test_columns_within_4096_steps_of_float32_are_read_from_their_middle():
    first = 2.0**24  # from here on steps are 2
    last = first + 2 * np.array([4095, 4096, 0])  # and a constant
    origin = trees._origin(np.stack([np.full(3, first), last]))
    np.testing.assert_array_equal(origin, [first + 4095, 0, 0])


def test_too_few_rows_to_cross_fit_are_refused():
    x, _ = table(5)
    with pytest.raises(ValueError, match="two labelled and two unlabelled"):
        cross_fitted(x, np.arange(5) < 1, np.zeros(5), np.random.default_rng(0))


@pytest.mark.parametrize(("n_labeled", "kept"), [(10, (10, 30)), (50, (20, 20)), (95, (35, 5))])
def test_of_many_rows_half_are_of_each_kind_or_all_of_the_rarer_one(monkeypatch, n_labeled, kept):
    monkeypatch.setattr(trees, "_MOST_ROWS", 40)
    labeled = np.arange(100) < n_labeled
    rows = thin(labeled, np.random.default_rng(0))
    assert len(np.unique(rows)) == 40
    assert (labeled[rows].sum(), (~labeled[rows]).sum()) == kept


def test_rows_that_no_tree_learnt_from_are_scored_by_all(monkeypatch):
    monkeypatch.setattr(trees, "_MOST_ROWS", 100)
    x, labeled = table()
    answers = np.tanh(3 * x[:, 0])
    scores, forest = cross_fitted(x, labeled, answers, np.random.default_rng(3))
    assert 200 <= (scores == forest(x)).sum() < 250
    assert np.corrcoef(scores, answers)[0, 1] > 0.8  # each row learns its own answer


@pytest.mark.parametrize("n_labeled", [2, 3, 4])
def test_there_are_no_more_folds_than_rows_of_the_rarer_kind(n_labeled):
    x, _ = table(60)
    labeled = np.arange(60) < n_labeled
    scores, forest = cross_fitted(x, labeled, labeled, np.random.default_rng(0))
    assert np.isfinite(scores).all()
    assert len(forest.roots) == 100 * n_labeled
