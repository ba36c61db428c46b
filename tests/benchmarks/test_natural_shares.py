"""Tables with their own share of positives."""

import numpy as np
import pandas as pd
import pytest
from natural_shares import _FIGURES, as_found, judged, line

from puicl_model import PUICLClassifier


def test_a_third_of_the_positives_that_were_drawn_is_labelled():
    positive = np.arange(1000) < 300
    rows, s, y = as_found(positive, 400)
    assert len(rows) == len(set(rows)) == len(s) == 400
    n = positive[rows].sum()
    assert s.sum() == round(n / 3)
    assert positive[rows][s == 1].all()
    np.testing.assert_array_equal(y, positive[rows][s == 0])
    again = as_found(positive, 400)
    np.testing.assert_array_equal(again[0], rows)


def test_two_hundred_are_labelled_at_most_and_two_at_least():
    assert as_found(np.arange(3000) < 900, 3000)[1].sum() == 200
    assert as_found(np.arange(50) < 4, 50)[1].sum() == 2


def test_figures_of_a_table_are_those_of_the_classifier():
    rng = np.random.default_rng(1)
    y = np.arange(80) < 30
    table = pd.DataFrame({"a": y + rng.normal(size=80), "b": np.where(y, "u", "v")})
    s = (np.arange(80) < 12).astype(int)
    classifier = PUICLClassifier(n_estimators=1)
    row = dict(zip(_FIGURES, judged(classifier, table, s, y[s == 0]), strict=True))
    assert (row["labeled"], row["unlabeled"], row["share"]) == (12, 68, 18 / 68)
    assert row["auc"] > 0.9
    assert row["estimate"] == classifier.class_prior_
    assert (row["low"], row["high"]) == classifier.class_prior_interval_
    assert row["called"] == (classifier.unlabeled_proba_ >= 0.5).sum()
    assert 0 < row["right"] <= row["called"]
    given = PUICLClassifier(n_estimators=1).fit(table, s, class_prior=18 / 68).unlabeled_proba_
    rarer = PUICLClassifier(n_estimators=1).fit(table, s, class_prior=(0, 0.5))
    assert row["rarer_estimate"] == pytest.approx(rarer.class_prior_, abs=1e-6)
    assert row["rarer_called"] == (rarer.unlabeled_proba_ >= 0.5).sum()
    assert row["given_called"] == (given >= 0.5).sum()
    assert row["given_brier"] == pytest.approx(np.mean((given - y[s == 0]) ** 2), abs=1e-6)


def test_a_line_says_what_its_tables_say_together(capsys):
    figures = {
        "share": [0.2, 0.4],
        "auc": [0.8, 0.7],
        "trees_auc": [0.7, 0.75],
        "estimate": [0.3, 0.3],
        "low": [0.1, 0.1],
        "high": [0.4, 0.35],
        "warned": [True, False],
        "called": [3, 7],
        "right": [3, 5],
        "brier": [0.1, 0.2],
        "rarer_estimate": [0.25, 0.35],
        "rarer_called": [1, 1],
        "rarer_right": [1, 0],
        "rarer_brier": [0.1, 0.14],
        "given_called": [2, 2],
        "given_right": [2, 1],
        "given_brier": [0.1, 0.1],
        "trees_estimate": [0.2, 0.2],
        "trees_called": [0, 0],
        "trees_right": [0, 0],
    }
    line("all", pd.DataFrame(figures))
    said = capsys.readouterr().out
    assert said == (
        "| all | 2 | 0.750 | 0.725 | +0.025 ± 0.075 | 50% | 0.300 | 0.300 | 0.100 | 50% | 0.28 | "
        "50% | 80% of 10 | 0.150 | 0.050 | 50% of 2 | 0.120 | 75% of 4 | 0.100 | 0.200 | 0.100 | "
        "none |\n"
    )
    line("none", pd.DataFrame(figures)[:0])
    assert not capsys.readouterr().out
