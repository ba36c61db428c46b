"""That no rival loses by its columns' units, by its own rows, or by what it is told of a share."""

from types import SimpleNamespace

import numpy as np
import pytest
from little_runs import labeled_and_not

from pu_bench.methods import METHODS, crossfit, density_ratio, empu, pu_risk, ted, vpu


@pytest.mark.parametrize(
    "name",
    [
        *("empu", "vpu", "ted", "ulsif", "elkan_noto", "nnpu", "upu", "pusb"),
        *("logistic", "extra_trees", "one_class_svm"),
    ],
)
def test_the_units_of_the_columns_change_no_score(name, monkeypatch):
    for setting, value in (("pu_risk.EPOCHS", 2), ("ted.WARM_START", 1), ("ted.EPOCHS", 1),
                           ("vpu.EPOCHS", 1)):  # fmt: skip
        monkeypatch.setattr(f"pu_bench.methods.{setting}", value)
    P, U = labeled_and_not()
    # Powers of two, so that not even a last bit can differ.
    units = np.array([2.0**12, 2.0**-6])
    plain, scaled = (METHODS[name]().fit_predict(P * by, U * by, 0) for by in (1.0, units))
    np.testing.assert_array_equal(plain.score, scaled.score)
    np.testing.assert_array_equal(plain.label, scaled.label)


def test_rivals_are_given_the_epochs_starts_kernels_and_folds_that_their_pages_say():
    assert "50 epochs" in pu_risk.RiskMinimiser.__doc__
    assert (pu_risk.EPOCHS, pu_risk.BATCH_SIZE) == (50, 64)
    assert "50 epochs" in METHODS["vpu"].__doc__
    assert (vpu.EPOCHS, vpu.HALVE_EVERY, vpu.PATIENCE, vpu.BATCH_SIZE) == (50, 20, 10, 100)
    assert "20 + 50 epochs" in METHODS["ted"].__doc__
    assert (ted.WARM_START, ted.EPOCHS, ted.BATCH_SIZE) == (20, 50, 64)
    assert "5 random starts" in METHODS["empu"].__doc__
    assert (empu.RESTARTS, empu.MAX_ITERATIONS, empu.TOLERANCE) == (5, 1000, 1e-4)
    assert "200 Gaussian kernels" in METHODS["ulsif"].__doc__
    assert (density_ratio.N_KERNELS, crossfit.FOLDS) == (200, 5)


def test_rivals_have_the_layers_steps_and_grids_that_their_pages_say():
    assert "300-300-300" in pu_risk.RiskMinimiser.__doc__
    assert "a step of 3e-4" in pu_risk.RiskMinimiser.__doc__
    assert (pu_risk.HIDDEN, pu_risk.LEARNING_RATE) == ([300] * 3, 3e-4)
    assert "512-512" in METHODS["ted"].__doc__
    assert "rate of .03" in " ".join(METHODS["ted"].__doc__.split())
    assert (ted.HIDDEN, ted.LEARNING_RATE) == ([512] * 2, 0.03)
    assert "Six hidden layers of 300" in METHODS["vpu"].__doc__
    assert "the grid is 2 x 2" in METHODS["vpu"].__doc__
    assert (vpu.HIDDEN, vpu.MIXUP_ALPHA) == ([300] * 6, 0.3)
    assert (vpu.LEARNING_RATES, vpu.MIXUP_WEIGHTS) == ((1e-3, 1e-4), (0.03, 0.3))
    assert "width and ridge out of 7 x 9" in METHODS["ulsif"].__doc__
    assert (len(density_ratio.WIDTHS), len(density_ratio.RIDGES)) == (7, 9)
    for grid, ends in ((density_ratio.WIDTHS, (0.2, 2)), (density_ratio.RIDGES, (1e-3, 10))):
        assert (grid[0], grid[-1]) == pytest.approx(ends)


def test_classifiers_of_p_against_u_are_as_large_as_they_have_been_chosen():
    logistic = METHODS["logistic"]().classifier(0)[-1].get_params()
    assert (logistic["C"], logistic["class_weight"]) == (1.0, None)
    trees = METHODS["extra_trees"]().classifier(0).get_params()
    assert (trees["n_estimators"], trees["min_samples_leaf"]) == (100, 5)
    assert (trees["max_depth"], trees["max_features"]) == (None, "sqrt")
    boosted = METHODS["gradient_boosting"]().classifier(0).get_params()
    assert (boosted["learning_rate"], boosted["max_iter"]) == (0.1, 50)
    assert (boosted["max_leaf_nodes"], boosted["min_samples_leaf"]) == (8, 10)
    assert boosted["early_stopping"] is False


def test_every_fold_of_p_against_u_leaves_out_as_many_of_both():
    left = []

    class Counts:
        def fit(self, x, s):
            left.append((20 - int(s.sum()), 40 - int((1 - s).sum())))
            return self

        def predict_proba(self, x):
            return np.zeros((len(x), 2))

    # Rows in an order, such as a table's: folds are drawn from all of it.
    P, U = np.arange(20.0)[:, np.newaxis], np.arange(40.0)[:, np.newaxis]
    crossfit.cross_fitted(lambda seed: Counts(), P, U, 0)
    assert left == [(4, 8)] * 5


def test_a_row_of_a_bag_is_scored_by_the_trees_of_other_bags(monkeypatch):
    made = {}

    class Bagging:
        # Labelled rows are in every bag, and here the last of the others, too.
        oob_decision_function_ = np.array(
            [[np.nan] * 2] * 2 + [[0.8, 0.2], [0.4, 0.6], [1.0, 0.0], [np.nan] * 2]
        )

        def __init__(self, estimator, **options):
            made.update(options, tree=estimator.get_params())

        def fit(self, x, s):
            made["fitted on"] = s.tolist()
            return self

        def predict_proba(self, x):
            return np.column_stack([np.full(len(x), 0.1), np.full(len(x), 0.9)])

    package = SimpleNamespace(BaggingPuClassifier=Bagging)
    monkeypatch.setattr("pu_bench.methods.packaged.extra_package", lambda *_: package)
    told = METHODS["bagging_pu"]().fit_predict(np.zeros((2, 1)), np.arange(4.0)[:, None], 5)
    # Which alone is scored by trees that saw it.
    assert told.score.tolist() == [0.2, 0.6, 0.0, 0.9]
    assert told.label.tolist() == [0, 1, 0, 1]
    assert made["fitted on"] == [1, 1, 0, 0, 0, 0]
    # A bag is as large as P, not as U, and smaller than U.
    assert (made["max_samples"], made["oob_score"], made["random_state"]) == (2, True, 5)
    assert made["n_estimators"] == 200
    assert (made["tree"]["max_depth"], made["tree"]["min_samples_leaf"]) == (None, 1)
    Bagging.oob_decision_function_ = np.full((13, 2), 0.5)
    METHODS["bagging_pu"]().fit_predict(np.zeros((9, 1)), np.arange(4.0)[:, None], 5)
    assert made["max_samples"] == 3


@pytest.mark.parametrize("name", ["logistic", "extra_trees", "gradient_boosting", "vpu"])
def test_a_share_is_the_mean_of_the_rows_probabilities(name, monkeypatch):
    monkeypatch.setattr("pu_bench.methods.vpu.EPOCHS", 2)
    told = METHODS[name]().fit_predict(*labeled_and_not(), 0)
    assert told.class_prior == pytest.approx(told.score.mean())
    assert told.class_prior != pytest.approx(told.label.mean(), abs=0.01)


@pytest.mark.parametrize("name", ["one_class_svm", "isolation_forest"])
def test_outliers_are_those_unlike_the_labelled_rows(name):
    P, _ = labeled_and_not()
    # The labelled rows' own centre is none, and a row far away is.
    there = METHODS[name]().fit_predict(P, np.array([P.mean(axis=0), P.mean(axis=0) + 30]), 0)
    assert there.label.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "threshold"),
    [
        *((name, 0.5) for name in ("empu", "vpu", "ted", "elkan_noto", "bagging_pu")),
        *((name, 0.5) for name in ("logistic", "extra_trees", "gradient_boosting", "random")),
        *((name, 0.0) for name in ("nnpu", "upu", "one_class_svm", "isolation_forest")),
    ],
)
def test_the_class_is_positive_from_where_its_score_says_so(name, threshold, monkeypatch):
    for setting, value in (("pu_risk.EPOCHS", 10), ("ted.WARM_START", 2), ("ted.EPOCHS", 3),
                           ("vpu.EPOCHS", 3)):  # fmt: skip
        monkeypatch.setattr(f"pu_bench.methods.{setting}", value)
    P, U = labeled_and_not(140, 70)
    told = METHODS[name]().fit_predict(P[:70], np.concatenate([P[70:], U + 0.5]), 0)
    np.testing.assert_array_equal(told.label, (told.score >= threshold).astype(int))
    assert 0 < told.label.mean() < 1
