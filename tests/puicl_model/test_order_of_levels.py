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
        ["0-2", "3-5", "6-9", "10+"],  # bands of one length
        ["none", "1-3", "4-6", "10+ "],
        ["< 1", "1-5", "6-9", "10+"],
        ["1 to 4", "5 to 9", "10 to 9", "unknown"],
        ["9 or under", "10 or over"],
        ["less than 1", "between 1 and 5", "Between 5 and 10", "more than 10"],
        ["from 1 to 4", "from 5 to 9", "from 10 to 19", "over 19"],
        ["before 1900", "1900-1949", "1950-1999", "after 1999"],
        ["pre-1940", "1940 to 1959", "1960 or later"],
        ["low (0-5)", "medium (6-10)", "high (11-20)"],
        ["Very low (1)", "Low (2)", "Medium (3)", "High (4)", "unknown"],
        ["normal [<120]", "elevated [120-129]", "high [130+]"],
        ["Low: <5", "Medium: 5-10", "High: >10"],
        ["BMI <18.5", "BMI 18.5-24.9", "BMI 30+"],
        ["no children", "1 child", "2 children", "3 or more children", "no answer"],
    ],
)
def test_numbers_in_levels_count_by_their_value(levels):
    assert in_order(levels[::-1], TEXT) == levels
    assert in_order(sorted(levels), TEXT) == levels


def test_codes_of_one_length_keep_the_order_of_the_alphabet():
    for levels in (["01", "23", "46", "7p"], ["A10", "A9x", "B01"], ["1-10", "10-1"]):
        assert in_order(levels[::-1], TEXT) == levels
    assert in_order(["-2", "10", " 9"], TEXT) == ["-2", " 9", "10"]  # numbers by value


@pytest.mark.parametrize(
    "levels",
    [
        ["<$500", "$500-$50K", "$50K-$100K", "$100K-$1M", "$1M+", "1 bn or more"],
        ["under $1,000", "$1,000-$5K", "5K or more"],  # 1,000 is no thousand thousands
        ["none", "<50K", "50-100K", "1-2 million", "refused"],
        ["64 MB", "512 MB", "1 GB", "2 GB", "1TB"],
        ["30 s", "< 1 min", "1-5 min", "2 h", "1 day"],
        ["1y", "18m", "2y", "30 m"],  # beside years m is a month
        ["2 h", "150 m", "3 h"],  # beside hours a minute
        ["<1 month", "2-3 months", "4-11 months", "1-2 years", "over 5 years"],
        ["6 months or less", "7-12 months", "1-2 years", "2+ years"],
        ["1 hour", "2 days", "1 week", "1 month", "1 year"],
        ["250 µg", "5 mg", "1 g", "2 kg"],
        ["5 mm", "1 cm", "500 m", "1 km"],
        ["5 ml", "1 dl", "1 l"],
        ["900 MHz", "1.8 GHz", "5 GHz"],
        ["56 kbps", "10 Mbps", "1 Gbps"],
    ],
)
def test_a_unit_multiplies_its_number(levels):
    assert in_order(levels[::-1], TEXT) == levels
    assert in_order(sorted(levels), TEXT) == levels


@pytest.mark.parametrize(
    "levels",
    [
        ["1C", "9B", "10A"],  # flats
        ["1 kg", "2 km", "3 g"],  # of several kinds
        ["1K", "2M", "3K pro"],  # not amounts alone
        ["1 kg", "2", "3 g"],  # without a unit where no money is
    ],
)
def test_numbers_before_other_letters_are_not_multiplied(levels):
    assert in_order(levels[::-1], TEXT) == levels


def test_a_unit_is_looked_for_in_linear_time():
    for level in (
        "1" * 100_000 + "x",
        "1," * 50_000 + "x",
        " " * 100_000 + "1",
        "< " + " " * 100_000,
    ):
        assert in_order([level, "1K"], TEXT)


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
