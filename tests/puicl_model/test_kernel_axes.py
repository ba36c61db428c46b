"""The axes of kernels along which the network reads a table in a blend."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata
from sklearn.decomposition import KernelPCA
from sklearn.ensemble import ExtraTreesRegressor

from puicl_model import PUICLClassifier
from puicl_model.contexts import TrainedRange
from puicl_model.kernel_axes import ForestAxes, GaussianAxes
from puicl_model.kernel_reading import read_along_kernels
from puicl_model.weights import load_model


def table(n=240, w=4, seed=0):
    """Rows, which are labelled, and P(positive) that rises with the first two columns."""
    rng = np.random.default_rng(seed)
    x = rng.lognormal(size=(n, w)) * 10.0 ** np.arange(w)
    score = norm.ppf((rankdata(x[:, :2], axis=0) - 0.5) / n).sum(axis=1)
    answers = norm.cdf(score)
    return x, answers > rng.uniform(0.5, 1.5, n), answers


def same_up_to_shift(ours, theirs):
    """Whether two tables are the same columns in the same order, up to origin and sign."""
    ours, theirs = (each - each.mean(axis=0) for each in (ours, theirs))
    signs = np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours, theirs * signs, atol=1e-6 * np.abs(theirs).max())


def test_gaussian_axes_are_kernel_components_of_the_normal_scores():
    x, _, _ = table()
    z = norm.ppf((rankdata(x, axis=0) - 0.5) / len(x)).astype(np.float32).astype(float)
    z /= z.std(axis=0)
    distances = ((z[:, None] - z) ** 2).sum(axis=2)
    unit = np.median(distances[distances > 0])
    expected = KernelPCA(4, kernel="rbf", gamma=1 / unit).fit_transform(z)
    same_up_to_shift(GaussianAxes.of(x)(x), expected)


def test_forest_axes_are_kernel_components_of_how_often_rows_share_a_leaf():
    x, labeled, answers = table()
    taught = answers.copy()
    taught[labeled] = np.quantile(answers[~labeled], 0.9)
    seed = int(np.random.default_rng(5).integers(2**31))
    forest = ExtraTreesRegressor(
        200, min_samples_leaf=5, max_features="sqrt", random_state=seed
    ).fit(x.astype(np.float32), taught)
    leaves = forest.apply(x.astype(np.float32))
    kernel = (leaves[:, None] == leaves).mean(axis=2)
    expected = KernelPCA(4, kernel="precomputed").fit_transform(kernel)
    axes = ForestAxes.of(x, labeled, answers, np.random.default_rng(5))
    same_up_to_shift(axes(x), expected)
    # What the trees were taught lies along the first of them.
    assert abs(np.corrcoef(axes(x)[:, 0], answers)[0, 1]) > 0.75


def both(x, labeled, answers):
    return ForestAxes.of(x, labeled, answers, np.random.default_rng(0)), GaussianAxes.of(x)


@pytest.mark.parametrize(("w", "k"), [(1, 2), (2, 2), (3, 3), (10, 10), (25, 10)])
def test_there_are_as_many_axes_as_columns_from_two_to_ten(w, k):
    x, labeled, answers = table(w=max(w, 2))
    for axes in both(x[:, :w], labeled, answers):
        assert axes(x[:7, :w]).shape == (7, k)


def test_a_row_lies_where_it_lies_whatever_rows_are_beside_it():
    x, labeled, answers = table()
    new = table(n=1500, seed=1)[0]
    for axes in both(x, labeled, answers):
        together = axes(new)
        np.testing.assert_array_equal(together[1400:], axes(new[1400:]))
        np.testing.assert_array_equal(together[3], axes(new[3:4])[0])
        assert axes(new[:0]).shape == (0, together.shape[1])


def test_far_cells_and_constant_columns_leave_finite_axes():
    x, labeled, answers = table()
    x[:, 3] = 7.0
    for axes in both(x, labeled, answers):
        assert np.isfinite(axes(np.array([[1e300, -1e300, 0.0, 8.0]]))).all()


def test_rows_that_are_all_alike_have_no_axes():
    x, labeled, answers = np.ones((40, 3)), np.arange(40) < 10, np.linspace(0, 1, 40)
    assert both(x, labeled, answers) == (None, None)
    x[0] = 2.0  # nor do the trees split off single rows
    assert both(x, labeled, answers)[0] is None


def test_the_network_reads_as_many_tables_as_kernels_tell_rows_apart(weights):
    network, card = load_model(weights)
    x, labeled, answers = table(n=60)

    def readers(x):
        how = {"n_estimators": 2, "rng": np.random.default_rng(1)}
        return read_along_kernels(network, TrainedRange.from_card(card), x, labeled, answers, **how)

    found, log_odds = readers(x)
    assert log_odds.shape == (2, (~labeled).sum())
    assert np.ptp(log_odds, axis=1).all()
    for reader, ours in zip(found, log_odds, strict=True):
        # A new row is not in the context that it is compared with; an old one is.
        assert reader(x[~labeled], 16).shape == ours.shape
    found, log_odds = readers(np.ones((60, 3)))
    assert found == []
    assert log_odds.shape == (0, (~labeled).sum())


def test_large_tables_make_kernels_of_some_of_their_rows(weights, monkeypatch):
    monkeypatch.setattr("puicl_model.kernel_reading.MOST_ROWS", 50)
    x, labeled, _ = table(n=150)
    fitted = PUICLClassifier(weights, n_estimators=1, blend="trees").fit(x, labeled)
    forest, gaussian = fitted._blend.readers
    assert len(gaussian.axes.rows) == 50
    assert [len(each.rows) for each in forest.new_rows.references] == [150]


def test_a_blend_reads_along_kernels_in_two_passes_each(weights):
    x, labeled, _ = table(n=120)
    for n_estimators, passes in ((1, 1), (2, 2), (5, 2)):
        fitted = PUICLClassifier(weights, n_estimators=n_estimators, blend="trees").fit(x, labeled)
        for reader in fitted._blend.readers:
            assert sum(len(each.estimators) for each in reader.new_rows.references) == passes
