"""`fit_many` and `predict_many`: the answers of single fits, in shared forward passes."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import puicl_model.inference as inference
from puicl_config import InputError, ProgressReport
from puicl_model import PUICL, PUICLClassifier, doubts, fit_many, predict_many

pytestmark = pytest.mark.filterwarnings(
    "ignore:only", "ignore:hardly", "ignore:nearly", "ignore:[0-9]+ of [0-9]+ tables"
)
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def classifier(untrained_weights):
    return PUICLClassifier(untrained_weights(feature_group=(0, 1)), n_estimators=3)


def numbers(seed: int, n: int = 40, d: int = 3, n_labeled: int = 12):
    rng = np.random.default_rng(seed)
    s = np.isin(np.arange(n), rng.permutation(n)[:n_labeled])
    return rng.normal(size=(n, d)) * rng.uniform(0.1, 9, d), s


def odd_tables() -> list[tuple]:
    """Of equal and of different shapes and kinds; one too wide for the network's range."""
    rng = np.random.default_rng(9)
    mixed = pd.DataFrame({"dose": rng.normal(size=50), "ward": rng.choice(list("abc"), 50)})
    mixed.loc[::7, "dose"] = np.nan
    return [
        *(numbers(seed) for seed in range(4)),
        numbers(7, d=23),
        (mixed, np.where(np.arange(50) % 3 == 0, 1, -1)),
        (*numbers(8), 0.25),
        numbers(9, n=41),
    ]


def test_the_weights_card_counts_for_every_table(untrained_weights):
    interval = {"center": [0.0, 1.0], "spread": [-3.0, 0.0, 0.0, 0.0, 0.0], "quantile": 1.0}
    card = {"class_prior_interval": interval, "trained_range": {"n_unlabeled": 10}}
    classifier = PUICLClassifier(untrained_weights(card), n_estimators=1)
    tables = [numbers(0), numbers(1)]
    for table, found in zip(tables, fit_many(tables, classifier), strict=True):
        expected = clone(classifier).fit(*table)
        assert found.report_["forward_passes"] == expected.report_["forward_passes"] == 3
        np.testing.assert_allclose(
            found.class_prior_interval_, expected.class_prior_interval_, **CLOSE
        )
        assert np.ptp(found.class_prior_interval_) > 0


@pytest.mark.parametrize("blend", [None, "trees"])
def test_every_table_has_the_answer_of_a_fit_of_its_own(classifier, blend, monkeypatch):
    monkeypatch.setattr("puicl_model.trees._TREES", 10)  # of 8 tables, and each of them again
    classifier = PUICLClassifier(classifier.model, n_estimators=3, blend=blend, random_state=5)
    tables, new = odd_tables(), numbers(20, d=3)[0]
    fits = fit_many(tables, classifier)
    assert len(fits) == len(tables)
    for table, found in zip(tables, fits, strict=True):
        expected = PUICLClassifier(**classifier.get_params()).fit(*table)
        np.testing.assert_allclose(found.unlabeled_proba_, expected.unlabeled_proba_, **CLOSE)
        np.testing.assert_array_equal(found.unlabeled_rows_, expected.unlabeled_rows_)
        assert found.class_prior_ == pytest.approx(expected.class_prior_, abs=1e-5)
        assert found.report_["warnings"] == expected.report_["warnings"]
        if expected.n_features_in_ == 3:
            later = found.predict_proba(new)
            np.testing.assert_allclose(later, expected.predict_proba(new), **CLOSE)
    assert np.ptp(fits[0].unlabeled_proba_) > 1e-3


def test_predict_many_gives_the_probabilities_of_the_unlabelled_rows(classifier):
    tables = odd_tables()
    found = predict_many(iter(tables), classifier)
    for (_, s, *_), proba, fit in zip(tables, found, fit_many(tables, classifier), strict=True):
        assert proba.shape == ((np.asarray(s) != 1).sum(),)
        np.testing.assert_array_equal(proba, fit.unlabeled_proba_)
    assert predict_many([], classifier) == []


def test_tables_of_one_shape_share_forward_passes_and_weights_are_read_once(
    classifier, monkeypatch
):
    passes = []
    forward = PUICL.forward

    def counted(self, x, *rest):
        passes.append(x.shape)
        return forward(self, x, *rest)

    monkeypatch.setattr(PUICL, "forward", counted)
    classifier.set_params(n_threads=1)
    fits = fit_many([numbers(seed) for seed in range(8)], classifier)
    assert passes == [(8 * 3, 40, 3)]
    assert len({id(fit.network_) for fit in fits}) == 1
    passes.clear()
    monkeypatch.setattr(inference, "_CELLS", 7 * 40 * 4)  # memory stays bounded
    fit_many([numbers(seed) for seed in range(8)], classifier)
    assert [shape[0] for shape in passes] == [7, 7, 7, 3]
    passes.clear()
    classifier.set_params(n_threads=5)  # each has something to do
    fit_many([numbers(seed) for seed in range(8)], classifier)
    assert sorted(shape[0] for shape in passes) == [4, 5, 5, 5, 5]
    passes.clear()
    classifier.set_params(n_threads=2)  # neither has more to do than the other
    fit_many([numbers(seed) for seed in range(8)], classifier)
    assert [shape[0] for shape in passes] == [6, 6, 6, 6]


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        ((np.ones((4, 2)), [0, 0, 0, 0]), ValueError, "table 1: s holds no labelled positive"),
        ((np.full((4, 2), np.inf), [1, 0, 0, 0]), ValueError, "table 1: column x0: row 0 holds"),
        ((None, [1, 0]), ValueError, "table 1: "),
        (np.ones((4, 2)), ValueError, r"table 1: give \(X, s\)"),
        ((*numbers(0), 1.5), ValueError, "table 1: class_prior must lie between 0 and 1"),
    ],
)
def test_a_table_that_cannot_be_fitted_is_named_before_any_is_scored(
    classifier, bad, kind, message, monkeypatch
):
    monkeypatch.setattr(PUICL, "forward", lambda *_: pytest.fail("scored"))
    with pytest.raises(kind, match=message):
        fit_many([numbers(0), bad], classifier)


def test_weights_that_are_not_there_are_told_without_a_table(tmp_path):
    with pytest.raises(InputError, match="no weights"):
        predict_many([numbers(0)], PUICLClassifier(tmp_path / "model.safetensors"))


def test_doubtful_tables_are_counted_in_one_warning(classifier, monkeypatch):
    monkeypatch.setattr(doubts, "_NO_SPREAD", 0.0)  # this network has learnt nothing
    tables = [numbers(0, n=90), numbers(1, n=90, n_labeled=4), numbers(2, n=90, n_labeled=3)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit_many(tables, classifier)
    (warning,) = [str(w.message) for w in told if w.category is UserWarning]
    assert warning.startswith("2 of 3 tables give reasons")
    assert "table 1: only 4 labelled positives" in warning
    assert warning.count("labelled positives") == 1


@pytest.mark.parametrize(("rows", "shown"), [(300, False), (3000, True)])
def test_a_bar_is_shown_on_a_terminal_where_it_takes_long(classifier, monkeypatch, rows, shown):
    labels = []

    class Recorded(ProgressReport):
        def __init__(self, label, *args):
            labels.append(label)
            super().__init__(label, *args)

    monkeypatch.setattr("puicl_model.shown.ProgressReport", Recorded)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    x = np.random.default_rng(0).normal(size=(rows, 5))
    for verbose, expected in ((None, shown), (False, False), (True, True)):
        labels.clear()
        PUICLClassifier(classifier.model, n_estimators=4, verbose=verbose).fit(
            x, np.arange(rows) < 20
        )
        assert (labels == ["puicl"]) == expected


class Log:
    """What a service puts in the place of a stream."""

    def write(self, text):
        return len(text)

    def flush(self):
        pass


@pytest.mark.parametrize("stream", ["none", "log", "closed"])
@pytest.mark.parametrize("verbose", [None, True])
def test_a_service_without_a_terminal_may_ask_for_long(
    classifier, monkeypatch, capsys, stream, verbose
):
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr("puicl_model.shown._WORTH_SHOWING", 1)
    monkeypatch.setattr("sys.stderr", {"none": None, "log": Log(), "closed": closed}[stream])
    x, s = numbers(0)
    fitted = clone(classifier).set_params(verbose=verbose).fit(x, s)
    assert np.isfinite(fitted.predict_proba(x + 0.25)).all()
    assert capsys.readouterr().out == ""


@pytest.mark.filterwarnings("ignore:only")
@pytest.mark.parametrize("keep", [False, True])
def test_new_rows_show_a_bar_too_where_contexts_have_to_be_read_or_they_are_many(
    classifier, monkeypatch, capsys, keep
):
    rng, s = np.random.default_rng(0), np.arange(60) < 20
    monkeypatch.setattr("puicl_model.shown._WORTH_SHOWING", 4 * 60 * 5)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    fitted = clone(classifier).set_params(n_estimators=4, verbose=False, keep_context=keep)
    fitted.fit(rng.normal(size=(60, 5)), s)
    shown = []
    # The second time, all of them have been read; the third time, as many rows are new.
    for verbose, n in ((None, 1), (None, 1), (None, 60), (True, 1), (False, 60)):
        fitted.verbose = verbose
        capsys.readouterr()
        fitted.predict_proba(rng.normal(size=(n, 5)))
        shown.append("4/4" in capsys.readouterr().err)
    assert shown == [not keep, False, True, True, False]


@pytest.mark.filterwarnings("ignore:only")
def test_the_bar_of_new_rows_goes_on_with_each_batch_of_them(classifier, monkeypatch):
    told = []

    class Recorded(ProgressReport):
        def advance(self, amount=1, note=""):
            super().advance(amount, note)
            told.append((self.done, self.total))

    rng, s = np.random.default_rng(0), np.arange(60) < 20
    fitted = clone(classifier).set_params(n_estimators=1, batch_rows=10)
    fitted.fit(rng.normal(size=(60, 5)), s)
    fitted.verbose = True
    monkeypatch.setattr("puicl_model.shown.ProgressReport", Recorded)
    fitted.predict_proba(rng.normal(size=(35, 5)))  # one pass, one context
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.filterwarnings("ignore:only")
@pytest.mark.parametrize("keep", [False, True])
def test_the_bar_of_a_fit_counts_the_contexts_of_all_passes(classifier, monkeypatch, keep):
    told = []

    class Recorded(ProgressReport):
        def advance(self, amount=1, note=""):
            super().advance(amount, note)
            told.append((self.done, self.total))

    monkeypatch.setattr("puicl_model.shown.ProgressReport", Recorded)
    clone(classifier).set_params(keep_context=keep, verbose=True).fit(*numbers(0))
    assert told[-1] == (3, 3)
