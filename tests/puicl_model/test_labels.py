"""Labels as they are written: numbers, booleans, words, masked and missing ones."""

import numpy as np
import pandas as pd
import pytest
from little_table import LABELED, N, S, table

from puicl_model import PUICLClassifier
from puicl_model.labels import labeled_mask, labels_of_rows

pytestmark = pytest.mark.filterwarnings("ignore:only 7 labelled", "ignore:A column-vector")

FORMS = {
    "one and zero": S,
    "one and minus one": np.where(LABELED, 1, -1),
    "bool": LABELED,
    "one and NaN": np.where(LABELED, 1, np.nan),
    "list with None": [1 if labeled else None for labeled in LABELED],
    "True and None": np.array([True if labeled else None for labeled in LABELED], dtype=object),
    "nullable integers": pd.array([1 if labeled else None for labeled in LABELED], dtype="Int64"),
    "nullable booleans": pd.array(
        [True if labeled else None for labeled in LABELED], dtype="boolean"
    ),
    "series with an index of its own": pd.Series(S, index=np.arange(N)[::-1]),
    "column": S.reshape(-1, 1),  # with scikit-learn's warning
    "float": S.astype(np.float32),
    "text of any length": S.astype(str).astype(np.dtypes.StringDType()),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_way_to_write_the_labels_means_the_same(classifier, fitted, form):
    classifier.fit(table(), FORMS[form])
    np.testing.assert_array_equal(classifier.unlabeled_rows_, fitted.unlabeled_rows_)
    np.testing.assert_array_equal(classifier.unlabeled_proba_, fitted.unlabeled_proba_)


@pytest.mark.parametrize(
    "s",
    [
        pd.Series(np.where(LABELED, "case", None), dtype="string"),
        pd.Series(np.where(LABELED, "case", "open"), dtype="category"),
        np.where(LABELED, "case", ""),
        ["case" if labeled else None for labeled in LABELED],
    ],
    ids=["pandas text with NA", "categorical", "numpy text", "list with None"],
)
def test_text_labels_in_every_form_with_positive_label(weights, fitted, s):
    other = PUICLClassifier(weights, positive_label="case").fit(table(), s)
    np.testing.assert_array_equal(other.unlabeled_proba_, fitted.unlabeled_proba_)


@pytest.mark.parametrize(
    ("s", "message"),
    [
        (np.zeros(N), "no labelled positive"),
        (np.full(N, -1), "no labelled positive"),
        (np.full(N, np.nan), "no labelled positive"),
        (np.ones(N), "no unlabelled row"),
        (S[:-1], "24 rows but s has 23"),
        (np.append(S, 0), "24 rows but s has 25"),
        (np.where(LABELED, 2, 0), "row 1 holds"),
        (np.where(LABELED, 1, np.inf), "row 0 holds"),
        (np.where(LABELED, 1.0, 0.5), "row 0 holds"),
        (np.where(LABELED, "yes", "no"), "row 0 holds"),
        (np.stack([S, S], axis=1), "one entry per row"),
        (None, "one entry per row"),
    ],
    ids=[
        *("all 0", "all -1", "all NaN", "all 1", "too short", "too long", "two", "infinite"),
        *("fraction", "words", "two columns", "None"),
    ],
)
def test_labels_that_make_no_pu_task_are_refused(classifier, s, message):
    with pytest.raises(ValueError, match=message):
        classifier.fit(table(), s)


@pytest.mark.parametrize("kind", [float, int, object])
def test_a_masked_label_is_missing(classifier, kind):
    hidden = np.flatnonzero(S)[:2]
    mask = np.isin(np.arange(N), hidden)
    expected = classifier.fit(table(), np.where(mask, 0, S)).unlabeled_proba_
    found = classifier.fit(table(), np.ma.array(S.astype(kind), mask=mask)).unlabeled_proba_
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("nothing", ["", "  ", "?", "NA", None])
def test_blank_text_labels_nothing(classifier, fitted, nothing):
    s = np.array(["1" if labeled else nothing for labeled in LABELED], dtype=object)
    np.testing.assert_array_equal(
        classifier.fit(table(), s).unlabeled_proba_, fitted.unlabeled_proba_
    )


@pytest.mark.parametrize("label", ["?", "", "NULL"])
def test_the_positive_label_may_be_a_mark_of_nothing(weights, fitted, label):
    s = np.where(LABELED, label, "no")
    found = PUICLClassifier(weights, positive_label=label).fit(table(), s)
    np.testing.assert_array_equal(found.unlabeled_proba_, fitted.unlabeled_proba_)


def test_labels_that_scikit_learn_has_numbered_anew_are_told(weights):
    s = np.where(LABELED, "case", "open")
    numbered = (s == "open").astype(int)
    with pytest.raises(ValueError, match="need 0 and 1 from the start"):
        PUICLClassifier(weights, positive_label="case").fit(table(), numbered)


def test_the_score_reads_truth_as_the_labels_or_as_booleans(weights):
    x = np.random.default_rng(0).normal(size=(N, 2))
    s = np.where(np.arange(N) % 2 == 0, "yes", "?")
    fitted = PUICLClassifier(weights, positive_label="yes").fit(x, s)
    truth = x[:, 0] > 0
    assert fitted.score(x, truth) == fitted.score(x, np.where(truth, "yes", "no"))
    with pytest.raises(ValueError, match="y holds no labelled positive"):
        fitted.score(x, truth.astype(int))


@pytest.mark.parametrize(
    ("label", "other", "nothing", "told"),
    [
        ("yes", "no", "", "'no'"),
        ("yes", " no", "NA", "'no'"),
        ("1", "0", "", "0"),
        (1, 0.0, np.nan, "0"),
        (True, False, None, "0"),
        ("?", "no", " ", "'no'"),
    ],
)
def test_one_other_word_beside_the_positive_label_and_nothing_is_doubted(
    label, other, nothing, told
):
    s = np.array([label, other, nothing, other], dtype=object)
    with pytest.warns(UserWarning, match=f"^s holds {told} in some rows and nothing in others: "):
        assert labels_of_rows(s, 4, label).tolist() == [True, False, False, False]


@pytest.mark.parametrize(
    "s",
    [["yes", "no", "no"], ["yes", "", None], ["yes", "no", "maybe", ""], ["yes", 0, "no", None]],
)
def test_no_or_several_other_words_beside_the_positive_label_are_not_doubted(s, recwarn):
    labels_of_rows(np.array(s, dtype=object), len(s), "yes")
    assert not recwarn.list


def test_a_positive_label_is_found_in_every_spelling():
    """Once any entry was equal as text, others that are equal as numbers stayed unlabelled."""
    for labels, label in (
        (["1", 1.0, 1, "1.0", "0"], "1"),
        ([" 1", True, "1.0 ", "1", "10"], 1),
        (["yes", "yes ", " yes", "yes", "yess"], "yes"),
    ):
        s = np.array(labels, dtype=object)
        assert labeled_mask(s, positive_label=label).tolist() == [True] * 4 + [False]


@pytest.mark.parametrize(
    ("s", "told"),
    [
        (["Yes", "No", None], "; the entries are 'No', 'Yes'"),
        ([f"case {k}" for k in range(6)], ""),
    ],
)
def test_a_positive_label_that_is_not_there_is_told_beside_those_that_are(s, told):
    with pytest.raises(ValueError, match=f"no entry equals positive_label='yes'{told}$"):
        labeled_mask(s, "yes")


@pytest.mark.parametrize("word", ["True", "true", "TRUE"])
def test_booleans_as_words_are_labels_and_equal_to_numbers(word):
    s = np.array([word, word, "", "0"], dtype=object)
    assert labeled_mask(s).tolist() == [True, True, False, False]
    parts = np.array([word, 1, 1.0, "1", "False", "0"], dtype=object)
    for label in (word, True, 1, "1.0"):
        assert labeled_mask(parts, positive_label=label).tolist() == [True] * 4 + [False] * 2


def test_long_numbers_as_labels_are_told_apart():
    found = labeled_mask(np.array([2**53, 2**53 + 1]), np.int64(2**53 + 1))
    assert found.tolist() == [False, True]
    labels = np.array(["9007199254740993", "9007199254740992"])
    assert labeled_mask(labels, positive_label="9007199254740993").tolist() == [True, False]


def test_a_low_line_parts_no_thousands_in_a_label():
    assert labeled_mask(["10", "1_0", "2"], "10").tolist() == [True, False, False]
    assert labeled_mask(["1_0", "10"], "1_0").tolist() == [True, False]


@pytest.mark.parametrize("other", ["Case", "CASE ", "case\u200b", "ca\u00adse"])
def test_unlabelled_rows_whose_label_reads_like_the_positive_one_are_told_of(other):
    s = ["case", "control", other, other, None]
    with pytest.warns(UserWarning, match=r"s holds '.*' in 2 rows, which .* label, 'case', but"):
        labeled = labeled_mask(s, positive_label="case", warns=True)
    assert labeled.tolist() == [True] + [False] * 4
