"""Bands and numbered words stand in the order of what they say."""

import numpy as np
import pandas as pd
import pytest
from columns_read import fit

from puicl_model import PUICLClassifier
from puicl_model.preprocessing.levels import in_order

TEXT = pd.Series(dtype=object)


@pytest.mark.parametrize(
    "levels",
    [
        ["0-4", "5-9", "10-14", "15-19", "100+"],
        ["<18", "18-24", "25-44", "65+"],
        ["≤1.5", "1.5–3", "3–12", ">12"],
        ["under 5", "5 to 9", "Over 9", "10 to 14"],
        ["less than $1,000", "$1,000 to $1,999", "$10,000 to $19,999", "At least $20,000"],
        ["<= 0.5", "(0.5, 9.0]", "(9.0, 10.0]", "(10.0, 20.0]"],
        ["(-20, -3]", "(-3, 0]", "[0, 4)", "[4, 30)"],
        ["(-inf, -5.0]", "(-5.0, 18.0]", "(18.0, inf]"],
        ["(-Inf,50]", "(50,100]", "(100,500]", "(500,1e+03]", "(1e+03, Inf]"],  # no thousands
        [".05 to .5", ".5 to 1", "1 to 1000", "1e+06 to 2e+06"],
        ["1st-4th", "9th", "10th", "Masters"],
        ["week 2", "week 10", "week 10b", "week 11"],
        ["V9", "V57", "V100"],
        ["-2", "0.5", "7", "7-12", "10", "1e3", "a", "b"],  # numbers and bands side by side
        ["180", "180H", "1000"],
        ["B", "a", "b", "nan"],
        ["1,000", "1,000,000", "x1,5", "x1,25"],  # 1,5 and 1,25 are no thousands
    ],
)
def test_numbers_in_levels_count_by_their_value(levels):
    assert in_order(levels[::-1], TEXT) == levels
    assert in_order(sorted(levels), TEXT) == levels


def test_codes_of_one_length_keep_the_order_of_the_alphabet():
    for levels in (["01", "23", "46", "7p"], ["A10", "A9x", "B01"], ["1-10", "10-1"]):
        assert in_order(levels[::-1], TEXT) == levels
    assert in_order(["-2", "10", " 9"], TEXT) == ["-2", " 9", "10"]  # numbers by value


def test_an_ordered_categorical_is_believed():
    levels = ["10-14", "0-4", "5-9"]
    column = pd.Series(pd.Categorical(levels, categories=levels, ordered=True))
    assert in_order(["5-9", "12+", "0-4", "10-14"], column) == [*levels, "12+"]
    unordered = pd.Series(pd.Categorical(levels, categories=levels))
    assert in_order(levels, unordered) == ["0-4", "5-9", "10-14"]


def test_age_bands_are_coded_by_age_also_where_a_fit_is_loaded(tmp_path):
    bands = ["0-4", "5-9", "10-14", "15-19", "20-24"]
    cells = np.array(bands)[np.arange(60) % 5]
    _, out = fit(age=list(cells))
    np.testing.assert_array_equal(out["age"], np.arange(60) % 5)
    table = pd.DataFrame({"age": cells, "b": np.arange(60) % 7})
    s = np.arange(60) % 5 > 3
    classifier = PUICLClassifier(n_estimators=1).fit(table, s)
    classifier.save(tmp_path / "c")
    loaded = PUICLClassifier.load(tmp_path / "c")
    new = table[::-1]
    np.testing.assert_array_equal(loaded.predict_proba(new), classifier.predict_proba(new))
