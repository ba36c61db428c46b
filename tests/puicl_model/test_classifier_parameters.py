"""The classifier's parameters, `class_prior`, contexts and warnings."""

import numpy as np
import pytest
import torch
from little_table import LABELED, N, S, table
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from puicl_model import (
    PUICLClassifier,
    TablePreprocessor,
    TrainedRange,
    doubts,
    save_model,
)
from puicl_model.contexts import auto_scalings

pytestmark = pytest.mark.filterwarnings("ignore:only 7 labelled")


def test_text_labels_need_to_be_told_which_is_positive(weights, fitted):
    words = np.where(LABELED, "sick", "unknown")
    told = PUICLClassifier(weights, positive_label="sick").fit(table(), words)
    np.testing.assert_array_equal(told.unlabeled_proba_, fitted.unlabeled_proba_)
    with pytest.raises(ValueError, match="positive_label="):
        PUICLClassifier(weights).fit(table(), words)
    with pytest.raises(ValueError, match="no entry equals positive_label='ill'"):
        PUICLClassifier(weights, positive_label="ill").fit(table(), words)


def test_decision_function_is_the_log_odds_of_predict_proba(fitted):
    x = np.concatenate([table(), table(seed=5, n=20)])
    p = fitted.predict_proba(x)
    np.testing.assert_allclose(fitted.decision_function(x), np.log(p[:, 1] / p[:, 0]), atol=1e-9)


@pytest.mark.parametrize(
    ("most_levels", "group", "scalings"),
    [
        (10, (0, 1), ("quantile",)),
        (11, (0, 1), ("quantile", "principal", "rotated_quantile", "standard")),
        (10, (0,), ("quantile", "quantile", "quantile", "principal")),  # sees no order of columns
    ],
)
def test_tables_of_levels_alone_are_not_turned_to_their_principal_axes(
    random_model, tmp_path, most_levels, group, scalings
):
    model, path = random_model(seed=11, feature_group=group), tmp_path / "model.safetensors"
    save_model(path, model.state_dict(), {"model": model.config.model_dump()})
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (N, 4)).astype(float)
    x[:, 2] = np.arange(N) % most_levels  # values, not rows, decide
    auto, listed = (PUICLClassifier(path, scalings=each).fit(x, S) for each in ("auto", scalings))
    assert PUICLClassifier().scalings == "auto"
    np.testing.assert_array_equal(auto.estimator_log_odds_, listed.estimator_log_odds_)
    np.testing.assert_array_equal(auto.predict_proba(x + 1), listed.predict_proba(x + 1))


def test_every_other_pass_reads_levels_from_the_other_end_where_the_network_was_shown_such(
    random_model, tmp_path
):
    model = random_model(seed=11, feature_group=(0, 1))
    paths = [tmp_path / name for name in ("plain.safetensors", "shown.safetensors")]
    for path, share in zip(paths, (0.0, 0.35), strict=True):
        prior = {"pi_final": [0.1, 0.9], "extensions": {"mirrored": share}}
        card = {"model": model.config.model_dump(), "config": {"prior": prior}}
        save_model(path, model.state_dict(), card)
    grades = np.random.default_rng(0).integers(0, 3, (N, 4)).astype(float)

    def passes(path, x):
        """Each pass's log-odds of the table's unlabelled rows, then of new rows."""
        options = {"n_estimators": 4, "preprocessing": None, "random_state": 0}
        fitted = PUICLClassifier(path, **options).fit(x, S)
        return np.hstack([fitted.estimator_log_odds_, fitted._new_rows(x[:9] * 0.7, 4)])

    plain, shown = (passes(path, grades) for path in paths)
    np.testing.assert_array_equal(shown[::2], plain[::2])
    np.testing.assert_allclose(shown[1::2], passes(paths[0], -grades)[1::2], atol=1e-5)
    assert np.abs(shown[1::2] - plain[1::2]).max() > 1e-3
    for x in (table(), grades > 0):  # measurements; columns of two values, each turned by itself
        np.testing.assert_array_equal(passes(paths[1], x), passes(paths[0], x))


def test_estimators_average_log_odds(fitted, weights):
    assert fitted.estimator_log_odds_.shape == (16, N - 7)
    assert fitted.report_["forward_passes"] == 2  # one a scaling: orders do not matter
    mean = fitted.estimator_log_odds_.mean(axis=0)
    np.testing.assert_allclose(fitted.unlabeled_proba_, 1 / (1 + np.exp(-mean)), atol=1e-12)
    # Three in one scaling and one in the other, run sixteen times or once each.
    new = table(seed=5, n=20)
    one_by_one = [
        PUICLClassifier(weights, n_estimators=1, scalings=(kind,)).fit(table(), S)
        for kind in auto_scalings(orders_matter=False, levels=False)
    ]
    for asked in (
        lambda each: each.estimator_log_odds_[0],
        lambda each: each.decision_function(new),
    ):
        apart = np.stack([asked(each) for each in one_by_one])
        whole = mean if apart.shape[1] == len(mean) else fitted.decision_function(new)
        np.testing.assert_allclose(apart.mean(axis=0), whole, atol=1e-5)
        assert np.abs(apart[[0, 3]].mean(axis=0) - whole).max() > 1e-4


def test_equal_unlabelled_rows_have_one_probability_even_in_different_contexts(weights):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(12, 2)), np.repeat(rng.normal(size=(700, 2)), 2, axis=0)])
    s = np.arange(len(x)) < 12
    fitted = PUICLClassifier(weights, n_estimators=1).fit(x, s)
    assert fitted.report_["forward_passes"] > 1
    np.testing.assert_array_equal(fitted.unlabeled_proba_[::2], fitted.unlabeled_proba_[1::2])
    np.testing.assert_array_equal(fitted.predict_proba(x[12:])[:, 1], fitted.unlabeled_proba_)


@pytest.mark.parametrize("share", [0.03, 0.3, 0.9])
def test_a_known_class_prior_is_the_mean_of_the_probabilities_and_keeps_their_order(
    weights, fitted, share
):
    told = PUICLClassifier(weights).fit(table(), S, class_prior=share)
    assert told.unlabeled_proba_.mean() == pytest.approx(share, abs=1e-9)
    assert (told.class_prior_, told.class_prior_interval_) == (share, (share, share))
    new = np.concatenate([table(), table(seed=2)])
    shift = told.decision_function(new) - fitted.decision_function(new)
    np.testing.assert_allclose(shift, shift[0], atol=1e-6)


@pytest.mark.parametrize("share", [0, 1, -0.2, "half"])
def test_a_class_prior_that_is_none_is_refused(classifier, share):
    with pytest.raises(ValueError, match="class_prior must lie between 0 and 1"):
        classifier.fit(table(), S, class_prior=share)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_estimators": 0}, "n_estimators must be a whole number from 1"),
        (
            {"scalings": ("standard", "log")},
            "scalings must be 'auto' or a list of some of standard, robust, quantile",
        ),
        ({"scalings": "standard"}, "scalings must be 'auto' or a list of some of"),
        ({"scalings": ()}, "scalings must be 'auto' or a list of some of"),
        ({"scalings": None}, "scalings must be 'auto' or a list of some of"),
        ({"blend": "forest"}, "blend must be one of"),
        ({"columns": "first"}, "columns must be one of"),
        ({"preprocessing": "none"}, "preprocessing must be 'auto', None or a transformer"),
        ({"device": "abacus"}, "device 'abacus'"),
        ({"device": None}, "device must be a name"),
    ],
)
def test_parameters_out_of_range_are_refused_when_fitting(weights, parameters, message):
    with pytest.raises(ValueError, match=message):
        PUICLClassifier(weights, **parameters).fit(table(), S)


def test_threads_are_as_before_after_fitting(weights):
    before = torch.get_num_threads()
    PUICLClassifier(weights, n_threads=before + 1).fit(table(), S).predict_proba(table(seed=2))
    assert torch.get_num_threads() == before


def test_a_table_wider_than_the_network_knows_is_read_in_column_subsets(weights):
    rng = np.random.default_rng(0)
    at_once = TrainedRange().n_features
    width = 2 * at_once + 7
    x, s = rng.normal(size=(60, width)), np.arange(60) < 15
    for columns in ("random", "relevant"):
        fitted = PUICLClassifier(weights, columns=columns, n_estimators=2).fit(x, s)
        assert fitted.report_["largest_context"]["columns"] <= at_once
        assert fitted.report_["forward_passes"] == 6
        first = np.sort(np.concatenate(fitted.column_orders_[:3]))
        assert np.array_equal(first, np.arange(width)) == (columns == "random")
        assert np.isfinite(fitted.predict_proba(rng.normal(size=(9, width)))).all()


def test_a_wide_table_is_read_whole_where_that_is_asked_for(weights):
    rng = np.random.default_rng(0)
    width = 2 * TrainedRange().n_features + 7
    x, s = rng.normal(size=(60, width)), np.arange(60) < 15
    fitted = PUICLClassifier(weights, columns="all", n_estimators=1).fit(x, s)
    assert fitted.report_["forward_passes"] == 1
    np.testing.assert_array_equal(fitted.column_orders_, [np.arange(width)])


def test_a_wide_table_read_along_its_leading_axes_is_saved_and_loaded(untrained_weights, tmp_path):
    weights = untrained_weights({"trained_range": {"n_features": 30}}, feature_group=(0, 1))
    rng = np.random.default_rng(0)
    x, s, new = rng.normal(size=(60, 70)), np.arange(60) < 15, rng.normal(size=(5, 70))
    fitted = PUICLClassifier(weights, n_estimators=4).fit(x, s)
    assert [len(order) for order in fitted.column_orders_] == [24, 23, 23, 10, 24, 23, 23, 10]
    fitted.save(tmp_path / "fit")
    loaded = PUICLClassifier.load(tmp_path / "fit")
    np.testing.assert_array_equal(loaded.predict_proba(new), fitted.predict_proba(new))


def test_doubts_are_warned_of_and_kept_in_the_report(weights, monkeypatch):
    monkeypatch.setattr(doubts, "_NO_SPREAD", 0.0)  # this network has learnt nothing
    rng = np.random.default_rng(0)
    x, s = rng.normal(size=(80, 3)), np.arange(80) < 20
    assert PUICLClassifier(weights).fit(x, s).report_["warnings"] == []
    with pytest.warns(UserWarning, match="only 4 labelled positives"):
        PUICLClassifier(weights).fit(x, np.arange(80) < 4)
    x[:, 1] += 10 * s
    with pytest.warns(UserWarning, match="column x1 alone separates nearly all labelled"):
        fitted = PUICLClassifier(weights).fit(x, s)
    assert len(fitted.report_["warnings"]) == 1
    x[:, 2] -= 9 * s
    with pytest.warns(UserWarning, match="columns x1, x2, each alone, separate nearly all"):
        fitted = PUICLClassifier(weights).fit(x, s)
    separation = fitted.report_["column_separation"]
    assert separation["x0"] < 0.5 < 0.99 < min(separation["x1"], separation["x2"])


def test_labelled_rows_unlike_every_unlabelled_one_are_doubted_though_no_column_says_it(weights):
    rng = np.random.default_rng(0)
    s = np.arange(240) < 40
    x = rng.normal(size=(240, 2)) @ [[3, 3], [-0.05, 0.05]]  # along the diagonal
    x += np.where(s[:, None], [1, -1], 0.0)
    with pytest.warns(UserWarning, match="columns together separate nearly all"):
        fitted = PUICLClassifier(weights).fit(x, s)
    assert fitted.report_["separation"] > 0.99
    assert "column x0" not in "".join(fitted.report_["warnings"])


@pytest.mark.parametrize("class_prior", [0.004, 0.99])
def test_a_share_that_is_given_is_not_doubted(weights, class_prior):
    x, s = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) < 20
    with pytest.warns(UserWarning, match="lie close together"):
        fitted = PUICLClassifier(weights).fit(x, s, class_prior=class_prior)
    # These columns are noise, which is told; the share is left to who gave it.
    (told,) = fitted.report_["warnings"]
    assert told.endswith("they say little more than class_prior does")


def test_categorical_features_without_the_preprocessor_that_reads_them_are_refused(weights):
    for preprocessing in (None, TablePreprocessor()):
        classifier = PUICLClassifier(weights, preprocessing=preprocessing, categorical_features=[0])
        with pytest.raises(ValueError, match="categorical_features needs preprocessing='auto'"):
            classifier.fit(table(), S)


def test_logarithms_of_probabilities_are_theirs_also_near_zero(fitted, monkeypatch):
    x = np.concatenate([table(), table(seed=5, n=20)])
    np.testing.assert_allclose(np.exp(fitted.predict_log_proba(x)), fitted.predict_proba(x))
    monkeypatch.setattr(fitted, "decision_function", lambda x: np.array([-800.0, 800.0]))
    np.testing.assert_array_equal(fitted.predict_log_proba(x), [[0, -800], [-800, 0]])


@pytest.mark.parametrize("when", ["score_unlabeled", "make_report"])
def test_a_fit_that_is_stopped_leaves_the_one_before_as_it_was(weights, monkeypatch, when):
    classifier = PUICLClassifier(weights)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"puicl_model.classifier.{when}", stop)
        with pytest.raises(KeyboardInterrupt):
            classifier.fit(table(), S)
    with pytest.raises(NotFittedError):
        classifier.predict_proba(table())
    expected = classifier.fit(table(), S).predict_proba(table(seed=5, n=20))
    with monkeypatch.context() as patched:
        patched.setattr(f"puicl_model.classifier.{when}", stop)
        with pytest.raises(KeyboardInterrupt):
            classifier.fit(table(seed=8, n=60), np.arange(60) < 20)
    np.testing.assert_array_equal(classifier.predict_proba(table(seed=5, n=20)), expected)


@pytest.mark.parametrize("more", [1, -1])
def test_a_preprocessing_that_makes_other_columns_of_new_rows_is_refused(weights, more):
    class Unsteady(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def fit_transform(self, X, y=None):
            return np.asarray(X)

        def transform(self, X):
            return np.hstack([X, X])[:, : X.shape[1] + more]

    fitted = PUICLClassifier(weights, n_estimators=1, preprocessing=Unsteady()).fit(table(), S)
    w = table().shape[1]
    with pytest.raises(ValueError, match=f"made {w + more} columns of these rows and {w} of"):
        fitted.predict_proba(table())


def test_the_report_tells_the_largest_context(weights):
    x, s = np.random.default_rng(0).normal(size=(1013, 2)), np.arange(1013) < 12
    report = PUICLClassifier(weights, n_estimators=1, scalings=("standard",)).fit(x, s).report_
    assert report["forward_passes"] == 2
    assert report["largest_context"] == {"labeled": 12, "unlabeled": 501, "columns": 2}


@pytest.mark.parametrize("name", ["n_threads", "n_estimators", "batch_rows"])
@pytest.mark.parametrize("value", [0, 2.5, "2"])
def test_numbers_that_are_none_or_not_whole_are_refused(weights, name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number from 1, not {value!r}"):
        PUICLClassifier(weights, **{name: value}).fit(table(), S)


def test_more_threads_than_any_machine_has_are_refused(weights):
    with pytest.raises(ValueError, match="n_threads must be at most 1,024, not 1025"):
        PUICLClassifier(weights, n_threads=1025).fit(table(), S)


@pytest.mark.parametrize("share", [1e-13, 1 - 1e-13])
def test_probabilities_are_never_quite_nought_or_one(weights, share):
    x, s = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) < 20
    proba = PUICLClassifier(weights).fit(x, s, class_prior=share).unlabeled_proba_
    np.testing.assert_array_equal(proba, 1e-12 if share < 0.5 else 1 - 1e-12)  # nor further from it
