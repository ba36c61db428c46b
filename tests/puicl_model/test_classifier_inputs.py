"""What the classifier takes as a table, and what it refuses."""

import datetime

import numpy as np
import pandas as pd
import pytest
from little_table import LABELED, D, N, S, table
from scipy import sparse
from sklearn.base import clone

from puicl_model import PUICLClassifier

pytestmark = pytest.mark.filterwarnings("ignore:only 7 labelled", "ignore:A column-vector")


def test_a_data_frame_gives_the_same_answer_and_its_names(classifier, fitted):
    frame = pd.DataFrame(table(), columns=["age", "height", "dose"])
    classifier.fit(frame, pd.Series(S))
    assert list(classifier.feature_names_in_) == ["age", "height", "dose"]
    np.testing.assert_array_equal(classifier.unlabeled_proba_, fitted.unlabeled_proba_)
    np.testing.assert_array_equal(classifier.predict_proba(frame), fitted.predict_proba(table()))
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict_proba(frame[["dose", "age", "height"]])


def test_integers_and_float32_are_read_as_the_same_numbers(classifier):
    x = np.random.default_rng(0).integers(-50, 50, size=(N, D))
    expected = classifier.fit(x.astype(np.float64), S).unlabeled_proba_
    for other in (x, x.astype(np.float32), x.tolist()):
        np.testing.assert_array_equal(classifier.fit(other, S).unlabeled_proba_, expected)


def test_oversampled_positives_are_doubted(classifier):
    x = np.random.default_rng(0).normal(size=(80, D))
    s = np.arange(80) < 20
    thrice = np.r_[:20, :20, :80]
    found = clone(classifier).fit(x[thrice], s[thrice]).report_["warnings"]
    assert sum("40 of the 60 labelled rows repeat other labelled rows" in one for one in found) == 1
    assert "repeat" not in " ".join(clone(classifier).fit(x, s).report_["warnings"])


def test_numpys_text_of_any_length_is_text(weights):
    x = table().round(3).astype(str)
    x[:, 1] = np.where(np.arange(N) % 3, "north", "")
    kind = np.dtypes.StringDType()
    expected = PUICLClassifier(weights).fit(x.astype(object), S)
    fitted = PUICLClassifier(weights).fit(x.astype(kind), S)
    np.testing.assert_array_equal(fitted.unlabeled_proba_, expected.unlabeled_proba_)
    missing = x.astype(np.dtypes.StringDType(na_object=np.nan))
    missing[:, 1] = np.where(x[:, 1] == "", np.nan, x[:, 1].astype(object))
    np.testing.assert_array_equal(
        fitted.predict_proba(missing), expected.predict_proba(x.astype(object))
    )


def test_polars_tables_and_labels_mean_what_the_pandas_ones_mean(weights):
    pl = pytest.importorskip("polars")
    x = table()
    seconds = (3600 * x[:, 1]).astype(int).tolist()
    numbers = [None if row % 5 == 0 else int(row) + 2**60 for row in range(N)]
    pandas = pd.DataFrame(
        {
            "a": x[:, 0],
            "whole": pd.array(numbers, dtype="Int64"),
            "ward": ["north", None, "west"] * 8,
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) * 40, unit="D"),
            "waited": pd.to_timedelta(seconds, unit="s"),
            "yes": x[:, 2] > -1,
        }
    )
    columns = {
        "a": x[:, 0],
        "whole": numbers,
        "ward": pl.Series(["north", None, "west"] * 8).cast(pl.Categorical),
        "seen": pandas["seen"].dt.to_pydatetime().tolist(),
        "waited": [datetime.timedelta(seconds=value) for value in seconds],
        "yes": pandas["yes"].to_list(),
    }
    expected = PUICLClassifier(weights).fit(pandas, LABELED)
    s = pl.Series([1 if labeled else None for labeled in LABELED])
    found = PUICLClassifier(weights).fit(pl.DataFrame(columns), s)
    assert found.report_["columns"] == expected.report_["columns"]
    assert found.report_["columns"]["waited"] == "number"
    np.testing.assert_allclose(found.unlabeled_proba_, expected.unlabeled_proba_, atol=1e-6)
    with pytest.raises(ValueError, match="lazy polars frame: give X"):
        PUICLClassifier(weights).fit(pl.DataFrame(columns).lazy(), s)


def test_masked_cells_are_missing(classifier):
    x, mask = table(), np.random.default_rng(0).random((N, D)) < 0.2
    expected = classifier.fit(np.where(mask, np.nan, x), S).unlabeled_proba_
    found = classifier.fit(np.ma.masked_array(x, mask), S).unlabeled_proba_
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (np.inf, "x1: row 3 holds inf"),
        (-np.inf, "x1: row 3 holds inf"),
        ("red", "row 3 holds 'red'"),
    ],
)
def test_an_infinite_cell_and_text_among_numbers_are_refused_with_their_place(
    classifier, fitted, cell, message
):
    x = table().astype(object)
    x[3, 1] = cell
    with pytest.raises(ValueError, match=message):
        classifier.fit(x, S)
    with pytest.raises(ValueError, match=message):
        fitted.predict_proba(x)


def test_a_table_of_one_dimension_is_refused(classifier):
    with pytest.raises(ValueError, match="2D"):
        classifier.fit(table()[:, 0], S)


@pytest.mark.parametrize("d", [1, D - 1, D + 1])
def test_another_number_of_features_is_refused_when_predicting(fitted, d):
    with pytest.raises(ValueError, match=f"X has {d} features"):
        fitted.predict_proba(np.zeros((2, d)))


def test_what_is_no_table_is_refused_in_one_clear_sentence(classifier):
    x = table()
    for wrong, message in (
        (pd.DataFrame(x, columns=["a", "a", "b"]), "more than one column 'a'"),
        (x.astype(complex), "Complex data not supported: give real and imaginary parts"),
        (pd.DataFrame({"a": x[:, 0], "b": x[:, 1] * 1j}), "column b: Complex data not supported"),
        (pd.Series(x[:, 0]), "2-dimensional"),
    ):
        with pytest.raises(ValueError, match=message) as told:
            classifier.fit(wrong, S)
        assert "\n" not in str(told.value)
    with pytest.raises(TypeError, match="Sparse labels"):
        classifier.fit(x, sparse.csr_matrix(S[:, None]))


def test_what_was_left_out_and_a_table_that_says_nothing_stand_among_the_reasons(classifier):
    x = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 2)), columns=["a", "b"])
    s = np.arange(N) % 2 == 0
    named = x.assign(who=[f"person {i}" for i in range(N)])
    with pytest.warns(UserWarning, match=r"left out: who") as told:
        fitted = classifier.fit(named, s)
    assert fitted.report_["warnings"][0].startswith("left out: who (text that names rows)")
    assert sum("left out" in str(warning.message) for warning in told) == 1
    with pytest.warns(UserWarning, match="no column tells any two rows apart"):
        fitted = classifier.fit(np.ones((N, 2)), s)
    assert len(np.unique(fitted.unlabeled_proba_)) == 1
    one_constant = x.assign(b=1.0)  # which no preprocessing leaves out
    fitted = classifier.set_params(preprocessing=None).fit(one_constant, s)
    assert "no column tells any two" not in " ".join(fitted.report_["warnings"])


def test_an_index_in_another_order_is_refused_and_another_index_is_not(classifier, fitted):
    x = pd.DataFrame(table(), index=np.arange(N) + 5)
    with pytest.raises(ValueError, match="the same index in another order"):
        classifier.fit(x, pd.Series(S, index=x.index)[::-1])
    with pytest.raises(ValueError, match="the same index in another order"):
        classifier.fit(x, pd.DataFrame({"s": S}, index=x.index)[::-1])
    several = pd.MultiIndex.from_product([range(N // 4), range(4)])
    for index in (x.index, np.arange(N), np.arange(N)[::-1], np.zeros(N), several):
        found = classifier.fit(x, pd.Series(S, index=index))
        np.testing.assert_array_equal(found.unlabeled_proba_, fitted.unlabeled_proba_)
    found = classifier.fit(x.set_axis(several), pd.Series(S, index=x.index[::-1]))
    np.testing.assert_array_equal(found.unlabeled_proba_, fitted.unlabeled_proba_)
    with pytest.raises(ValueError, match="or drop the indices where the positions are right"):
        classifier.fit(x.set_axis(several), pd.Series(S, index=several[::-1]))
    # An index that counts from 0 may have been given anew after the rows were shuffled.
    with pytest.warns(UserWarning, match="the same index in another order") as told:
        found = classifier.fit(x.set_axis(range(N)), pd.Series(S, index=np.arange(N)[::-1]))
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found.unlabeled_proba_, fitted.unlabeled_proba_)


def test_indices_of_which_a_part_is_the_same_are_doubted(classifier, fitted, recwarn):
    x = pd.DataFrame(table(), index=np.arange(N) + 5)
    shifted = pd.Series(S, index=x.index + 3)
    with pytest.warns(UserWarning, match=f"{N - 3} of {N} index entries in common") as told:
        found = classifier.fit(x, shifted)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(found.unlabeled_proba_, fitted.unlabeled_proba_)
    # Not where nothing is the same, nor where one of them counts the rows anew.
    recwarn.clear()
    classifier.fit(x, pd.Series(S, index=x.index + N))
    classifier.fit(x, pd.Series(S, index=np.resize(x.index[:3], N)))  # several rows have one
    classifier.fit(x, pd.Series(S, index=np.arange(N)))
    classifier.fit(x.set_axis(range(N)), shifted)
    assert not [w for w in recwarn if "index" in str(w.message)]


def test_a_refused_fit_leaves_the_one_before_as_it_was(weights):
    fitted = PUICLClassifier(weights, blend="trees").fit(table(), S)
    before = fitted.predict_proba(table())
    with pytest.raises(ValueError, match="blend='trees' needs two labelled"):
        fitted.fit(table() * 3, np.arange(N) == 0)
    wider = pd.DataFrame(np.ones((N, D + 1)), columns=list("abcd"))
    for x, s in ((wider, np.full(N, "strange")), (wider.assign(d=np.inf), S)):
        with pytest.raises(ValueError, match=r"strange|infinity"):
            fitted.fit(x, s)
    np.testing.assert_array_equal(fitted.predict_proba(table()), before)
    # Nor does the order of columns of a fit before count for a fit without names.
    fitted.fit(pd.DataFrame(table(), columns=[2, 0, 1]), S).fit(table(), S)
    fitted.predict_proba(pd.DataFrame(table(), columns=[0, 1, 2]))


def test_huge_cells_bring_no_numeric_warning(classifier, recwarn):
    x = pd.DataFrame(table(), columns=list("abc")).assign(z=np.resize([1.7e308, -1.7e308, 1.0], N))
    classifier.fit(x, S)
    assert not [w for w in recwarn if w.category is RuntimeWarning]


def test_a_device_that_computes_nothing_is_refused(weights):
    with pytest.raises(ValueError, match="'meta' computes nothing"):
        PUICLClassifier(weights, device="meta").fit(np.eye(4), [1, 1, 0, 0])


@pytest.mark.parametrize(("other", "what"), [(-1, "-1"), (np.nan, "nothing")])
def test_two_kinds_of_unlabelled_rows_are_doubted(classifier, fitted, other, what):
    two = np.where(LABELED, 1.0, 0.0)
    two[np.flatnonzero(~LABELED)[::2]] = other
    with pytest.warns(UserWarning, match=f"holds 0 in some rows and {what} in others"):
        classifier.fit(table(), two)
    np.testing.assert_array_equal(classifier.unlabeled_proba_, fitted.unlabeled_proba_)


def test_names_that_are_not_there_are_told_once(classifier):
    named = pd.DataFrame(table(), columns=[f"a{j}" for j in range(D)])
    classifier.fit(named, S)
    with pytest.warns(UserWarning, match="valid feature names, but PUICLClassifier") as told:
        found = classifier.predict_proba(named.to_numpy())
    assert len(told) == 1
    np.testing.assert_array_equal(found, classifier.predict_proba(named))
    classifier.fit(table(), S)
    with pytest.warns(UserWarning, match="X has feature names, but PUICLClassifier") as told:
        np.testing.assert_array_equal(classifier.predict_proba(named), found)
    assert len(told) == 1
