"""Permutation importance: how much the answer depends on each column."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from puicl_model import PUICLClassifier, TablePreprocessor, doubts, permutation_importance

N = 60


@pytest.fixture(autouse=True)
def _any_answer(monkeypatch):
    monkeypatch.setattr(doubts, "_NO_SPREAD", 0.0)  # this network has learnt nothing


def importance(fitted: PUICLClassifier, table: pd.DataFrame, **options) -> pd.Series:
    return permutation_importance(fitted, table.iloc[fitted.unlabeled_rows_], **options)


def test_importance_finds_the_column_that_the_score_depends_on(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "constant": 1.0, "b": rng.normal(size=N)})
    fitted = PUICLClassifier(weights).fit(table, np.arange(N) < 15)
    changes = importance(fitted, table)
    assert set(changes.index[:2]) == {"a", "b"}
    assert changes["constant"] == 0
    assert changes.iloc[0] > 0


def test_importance_is_the_mean_change_over_evenly_spaced_unlabelled_rows(weights, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "constant": 1.0, "b": rng.normal(size=N)})
    fitted = PUICLClassifier(weights).fit(table, np.arange(N) % 4 == 0)
    scored = []

    def by_the_last_column(X):
        scored.append(X)
        return 5 * X[:, -1]

    monkeypatch.setattr(fitted, "_log_odds_of_new", by_the_last_column)
    monkeypatch.setattr("puicl_model.importance._ROWS", (20, 20))
    changes = importance(fitted, table)
    (X,) = scored
    sample = table.loc[fitted.unlabeled_rows_[::3], ["a", "b"]].to_numpy()
    before, without_a, without_b = X.reshape(3, 15, 2)
    np.testing.assert_array_equal(before, sample)
    for shuffled, column in ((without_a, 0), (without_b, 1)):
        np.testing.assert_array_equal(shuffled[:, 1 - column], sample[:, 1 - column])
        np.testing.assert_array_equal(np.sort(shuffled[:, column]), np.sort(sample[:, column]))
        assert (shuffled[:, column] != sample[:, column]).any()
    after = np.abs(expit(5 * without_b[:, 1]) - expit(5 * sample[:, 1])).mean()
    assert changes.to_dict() == {"b": pytest.approx(after), "a": 0, "constant": 0}
    assert after > 0.1


def test_importance_compares_new_rows_with_new_rows_and_not_with_those_of_the_fit(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    fitted = PUICLClassifier(weights).fit(table, np.arange(N) < 15)
    changes = importance(fitted, table)
    fitted._key_log_odds = fitted._key_log_odds + 5  # what a row of the fit has, and no new one
    assert changes.equals(importance(fitted, table))


def test_of_many_columns_those_that_were_made_into_several_are_shuffled(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 78))).rename(columns="x{}".format)
    table["kind"] = rng.choice(list("abcd"), N)
    table["day"] = pd.date_range("2020-01-01", periods=N, freq="37D")
    one_hot = TablePreprocessor(one_hot_levels=10)
    fitted = PUICLClassifier(weights, n_estimators=1, preprocessing=one_hot)
    changes = importance(fitted.fit(table, np.arange(N) < 15), table)
    assert changes["kind"] > 0
    assert (changes > 0).sum() == 75


def test_of_many_columns_those_that_tell_most_alone_are_shuffled(weights):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 80))).rename(columns="x{}".format)
    table.loc[:14, "x79"] += 3
    fitted = PUICLClassifier(weights, n_estimators=1).fit(table, np.arange(N) < 15)
    changes = importance(fitted, table)
    separation = pd.Series(fitted.report_["column_separation"])
    assert set(changes[changes > 0].index) == set(separation.nlargest(75).index)
    few = table.iloc[:, 5:]
    fitted = PUICLClassifier(weights, n_estimators=1).fit(few, np.arange(N) < 15)
    assert (importance(fitted, few) > 0).all()


@pytest.mark.parametrize("preprocessing", ["auto", None, StandardScaler()])
def test_an_array_has_the_importance_of_the_frame_with_its_cells(weights, preprocessing):
    x = np.random.default_rng(0).normal(size=(N, 3))
    s = np.arange(N) < 15
    unnamed = PUICLClassifier(weights, n_estimators=1, preprocessing=preprocessing).fit(x, s)
    found = permutation_importance(unnamed, x[15:])
    assert set(found.index) == {"x0", "x1", "x2"}
    assert (found > 0).all()
    table = pd.DataFrame(x, columns=[7, 3, 5])
    named = PUICLClassifier(weights, n_estimators=1, preprocessing=preprocessing).fit(table, s)
    of_frame = importance(named, table)
    assert of_frame.to_dict() == {7: found["x0"], 3: found["x1"], 5: found["x2"]}


def test_rows_of_any_frame_are_asked_about_by_the_names_of_the_fit(weights):
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=N), "kind": rng.choice(list("abc"), N)})
    fitted = PUICLClassifier(weights, n_estimators=1).fit(table, np.arange(N) < 15)
    others = table.iloc[15:].reset_index(drop=True)
    found = permutation_importance(fitted, others)
    assert found.equals(permutation_importance(fitted, polars.from_pandas(others)))


@pytest.mark.parametrize("named", ["the fit", "the rows"])
def test_names_that_only_one_of_fit_and_rows_has_are_warned_of_once(weights, named):
    x = np.random.default_rng(0).normal(size=(N, 2))
    table = pd.DataFrame(x, columns=["a", "b"])
    first, later = (table, x[15:]) if named == "the fit" else (x, table.iloc[15:])
    fitted = PUICLClassifier(weights, n_estimators=1).fit(first, np.arange(N) < 15)
    with pytest.warns(UserWarning, match="feature names") as told:
        found = permutation_importance(fitted, later)
    assert len(told) == 1
    assert (found[["a", "b"]] > 0).all()


def test_as_many_rows_are_shuffled_as_are_asked_for_and_then_every_column(weights, monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(N, 80)))
    fitted = PUICLClassifier(weights, n_estimators=1).fit(table, np.arange(N) < 15)
    sizes = []
    answer = fitted._log_odds_of_new
    monkeypatch.setattr(fitted, "_log_odds_of_new", lambda X: (sizes.append(len(X)), answer(X))[1])
    assert (importance(fitted, table, n_rows=9) > 0).all()
    assert importance(fitted, table, n_rows=1000).size == 80
    assert sizes == [81 * 9, 81 * 45]
    assert (permutation_importance(fitted, table.iloc[:1]) == 0).all()


@pytest.mark.parametrize("n_rows", [1, True, -3, 2.5, "all"])
def test_a_number_of_rows_that_cannot_be_shuffled_is_refused(classifier, n_rows):
    x = np.random.default_rng(0).normal(size=(N, 2))
    with pytest.raises(NotFittedError):
        permutation_importance(classifier, x)
    classifier.fit(x, np.arange(N) < 15)
    with pytest.raises(ValueError, match=re.escape(f"n_rows is {n_rows!r}, and must be")):
        permutation_importance(classifier, x, n_rows)
