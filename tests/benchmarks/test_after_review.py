"""Fits again after a review of unlabelled rows."""

import numpy as np
import pandas as pd
import pytest
from after_review import _FIGURES, line, reviews
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier


def overlapping(n: int, n_positive: int) -> tuple[pd.DataFrame, np.ndarray]:
    """A table whose classes overlap, and its classes."""
    y = np.arange(n) < n_positive
    rng = np.random.default_rng(3)
    return pd.DataFrame({"a": y + rng.normal(size=n), "b": y + rng.normal(size=n)}), y


@pytest.mark.filterwarnings("ignore:the (estimated share|share of positives)")
def test_both_reviews_are_judged_on_the_rows_that_they_left():
    table, y = overlapping(n=120, n_positive=50)
    s = (np.arange(120) < 20).astype(int)
    classifier = PUICLClassifier(n_estimators=1).fit(table, s, class_prior=(0, 0.5))
    first, estimate = classifier.unlabeled_proba_, classifier.class_prior_
    top, drawn = (
        dict(zip(_FIGURES, row, strict=True))
        for row in reviews(classifier, table, s, y[s == 0], reviewed=30)
    )
    assert (top["labeled"], top["unlabeled"], top["share"]) == (20, 100, 0.3)
    order = np.argsort(-first, kind="stable")
    assert top["first"] == roc_auc_score(y[20:][order[30:]], first[order[30:]])
    assert top["found"] == y[20:][order[:30]].sum() > drawn["found"]
    assert drawn["share found"] == drawn["found"] / 30
    assert top["estimate"] == drawn["estimate"] == estimate
    assert np.isnan(top["within its interval"])
    assert abs(drawn["within its interval"] - drawn["share found"]) < 0.15

    # What the guide advises, done by hand.
    found = order[:30][y[20:][order[:30]]]
    s[20 + found] = 1
    rest = order[30:]
    again = pd.Series(np.nan, np.arange(120))
    classifier.fit(table, s, class_prior=(0, 0.5))
    again[classifier.unlabeled_rows_] = classifier.unlabeled_proba_
    assert top["kept"] == roc_auc_score(y[20:][rest], again[20 + rest])
    without = np.setdiff1d(np.arange(120), 20 + np.setdiff1d(order[:30], found))
    classifier.fit(table.iloc[without], s[without], class_prior=(0, 0.5))
    again[without[classifier.unlabeled_rows_]] = classifier.unlabeled_proba_
    assert top["dropped"] == roc_auc_score(y[20:][rest], again[20 + rest])


def test_a_review_that_finds_positives_alone_has_no_forest(capsys):
    table, y = overlapping(n=60, n_positive=40)
    table["a"] += 9 * y
    s = (np.arange(60) < 20).astype(int)
    rows = reviews(PUICLClassifier(n_estimators=1), table, s, y[s == 0], reviewed=5)
    frame = pd.DataFrame(rows, columns=_FIGURES)
    assert frame.forest.isna().tolist() == [True, False]
    line("ranked first", frame[:1])
    cells = [cell.strip() for cell in capsys.readouterr().out.split("|")][1:-1]
    assert cells[:2] == ["ranked first", "1"]
    assert cells[5:7] == ["", "1"]  # no forest, of one table
    assert cells[-1] == ""
