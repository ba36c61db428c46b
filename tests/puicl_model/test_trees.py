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
