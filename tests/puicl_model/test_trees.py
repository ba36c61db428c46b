import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor

from puicl_model.trees import Forest, cross_fitted


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


def test_too_few_rows_to_cross_fit_are_refused():
    x, _ = table(5)
    with pytest.raises(ValueError, match="two labelled and two unlabelled"):
        cross_fitted(x, np.arange(5) < 1, np.zeros(5), np.random.default_rng(0))
