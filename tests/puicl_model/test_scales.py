"""Words that have an order of their own stand in it: grades, answers, sizes, months."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from columns_read import fit
from sklearn.exceptions import NotFittedError

from puicl_model import PUICLClassifier, TablePreprocessor
from puicl_model.preprocessing import scales
from puicl_model.preprocessing.levels import in_order

TEXT = pd.Series(dtype=object)


@pytest.mark.parametrize(
    "levels",
    [
        ["Very_Low", "Low", "Medium", "High", "Very_High"],
        ["low risk", "medium risk", "high risk", "very high risk", "unknown"],
        ["None", "Mild", "Moderate", "Severe"],
        ["absent", "mild", "moderate", "severe", "not recorded", "other"],
        ["Bad", "Medium", "Good"],
        ["poor", "fair", "good", "very good", "excellent"],
        ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        ["Never", "Rarely", "Sometimes", "Often", "Always"],
        ["never smoker", "former smoker", "occasional smoker", "current smoker"],
        ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree", "Don't know"],
        ["Disagree strongly", "Disagree a little", "Neither agree nor disagree", "Agree strongly"],
        ["very dissatisfied", "dissatisfied", "somewhat satisfied", "satisfied", "very satisfied"],
        ["not at all important", "slightly important", "important", "extremely important"],
        ["much worse", "worse", "about the same", "better", "much better", "no answer"],
        ["XS", "S", "M", "L", "XL", "XXL"],
        ["extra small", "small", "medium", "large"],
        ["Low income", "Lower middle income", "Upper middle income", "High income"],
        ["primary", "secondary", "bachelor's", "master's", "PhD"],
        ["well differentiated", "moderately differentiated", "poorly differentiated"],
        ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
        ["one", "two", "three", "four", "several"],
        ["none", "light", "normal", "heavy"],
        ["trivial", "minor", "normal", "major", "critical"],
        ["low", "normal", "high", "severe"],
        ["low", "normal", "borderline", "high"],
        ["low", "normal", "elevated", "high"],
        ["very low", "low", "low-medium", "high-medium", "high"],
        ["low", "low–medium", "medium", "medium–high", "high"],
        ["low", "high", "very high", "extremely high"],
        ["high school", "some college", "undergraduate", "graduate", "PhD"],
        ["some", "most", "almost all", "all"],
        ["never", "occasional", "regular", "daily"],
        ["never", "less than monthly", "monthly", "weekly", "daily or almost daily"],
        ["very dissatisfied", "not satisfied", "satisfied"],
        ["very unlikely", "not likely", "likely"],
        ["not at all important", "not important", "important", "very important"],
        ["low", "medium", "high", "not sure", "prefer not to answer"],
        ["low", "medium", "high", "-"],
        ["disagree", "neutral", "agree", "Don`t know"],
        ["no risk", "low risk", "high risk", "unknown risk"],
        ["negative", "trace", "small", "moderate", "large"],
        ["decreased", "normal", "increased"],
        ["weak", "normal", "strong"],
        ["no", "sometimes", "often", "always"],
        ["definitely no", "probably no", "maybe", "probably yes", "definitely yes"],
        ["very bad", "bad", "neutral", "good", "very good"],
        ["Well", "Moderate", "Poor", "Undifferentiated"],
        ["stage V", "stage VI", "stage IX", "stage X"],
        ["VL", "L", "M", "H", "VH"],
        ["S", "M", "L", "XL", "2XL", "3XL"],
        ["Not at all", "Several days", "More than half the days", "Nearly every day"],
        ["underweight", "normal weight", "overweight", "obese", "severely obese"],
        ["No difficulty", "Some difficulty", "A lot of difficulty", "Cannot do at all"],
        ["negligible", "minor", "moderate", "major", "severe"],
        ["Rarely or never", "Sometimes", "Often"],
        ["Elementary", "Middle", "High", "College"],
        ["freshman", "sophomore", "junior", "senior"],
        ["Fail", "Pass", "Merit", "Distinction"],
        ["-", "+", "++", "+++"],
        ["neg", "trace", "+", "++", "unknown"],
        ["Negative", "(+)", "+", "++", "+++"],
        ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"],
        ["Less than high school", "High school graduate", "Some college", "Bachelor's degree"],
        ["Some high school", "Some college", "College graduate", "Graduate degree"],
        ["Never", "Once a month", "Once a week", "Several times a week", "Every day"],
    ],
)
def test_words_of_one_scale_stand_as_in_it(levels):
    assert levels != sorted(levels)
    assert in_order(levels[::-1], TEXT) == levels
    assert in_order(sorted(levels), TEXT) == levels


@pytest.mark.parametrize(
    "levels",
    [
        ["low", "high"],  # two alone are turned round at most
        ["high", "low", "unknown"],
        ["high", "low", "medium", "purple"],
        ["D", "M", "S"],  # divorced, married, single
        ["A", "AB", "B", "O"],
        ["black", "other", "white"],
        ["+", "-", "unknown"],
        ["+", "++", "A+"],
        ["divorced", "married", "single", "widowed"],
        ["agree", "satisfied", "very agree"],  # of two questions
        ["left", "neither", "right", "same"],
        ["risk", "high risk", "low risk"],  # nothing is left of the first without its last word
    ],
)
def test_other_words_stand_by_the_alphabet(levels):
    assert scales.ranks(levels) == {}
    assert in_order(levels[::-1], TEXT) == sorted(levels)


@pytest.mark.parametrize(
    "levels",
    [
        ["negative", "trace", "1+", "2+", "3+"],
        ["None", "1-2", "3-5", "10+", "unknown"],
        ["never", "1-2 times", "10 or more times"],
        ["-5 to 0", "zero", "0 to 5"],
        ["1-4", "5+", "many"],
        ["No", "1+", "2+", "3+"],  # of one length
        ["never", "18-24", "25-34", "35-44"],
        ["none", "100+", "200+"],
        ["NEG", "TRACE", "1+", "2+", "3+"],
    ],
)
def test_nothing_stands_before_one(levels):
    assert in_order(levels[::-1], TEXT) == levels
    assert in_order(sorted(levels), TEXT) == levels


def test_a_word_for_nothing_beside_one_number_is_a_word():
    assert in_order(["none", "7 dwarfs", "blue"], TEXT) == ["7 dwarfs", "blue", "none"]


def test_an_ordered_categorical_is_believed_before_the_words():
    levels = ["high", "low", "medium", "very high"]
    column = pd.Series(pd.Categorical(levels, categories=levels, ordered=True))
    assert in_order(sorted(levels, reverse=True), column) == levels


def test_grades_are_coded_by_rank():
    levels = ["never", "rarely", "sometimes", "often"]
    _, out = fit(how_often=list(np.array(levels)[np.arange(60) % 4]))
    np.testing.assert_array_equal(out["how_often"], np.arange(60) % 4)


def test_the_order_can_be_looked_up(tmp_path):
    grades = np.array(["never", "rarely", "sometimes", "often"])
    rows = np.arange(60)
    table = pd.DataFrame({"grade": grades[rows % 4], "x": rows * 0.3, "sex": ["m", "f"] * 30})
    table.loc[59, "sex"] = "?!"  # rare
    classifier = PUICLClassifier(n_estimators=1).fit(table, rows % 4 == 2)
    expected = {"grade": list(grades), "sex": ["f", "m"]}
    assert classifier.preprocessor_.levels_ == expected
    classifier.save(tmp_path / "saved")
    assert PUICLClassifier.load(tmp_path / "saved").preprocessor_.levels_ == expected
    with pytest.raises(NotFittedError):
        _ = TablePreprocessor().levels_


def test_letters_of_grades_have_the_order_of_the_alphabet():
    for levels in (["A", "B", "C", "D"], ["I", "II", "III", "IV"]):
        assert in_order(levels[::-1], TEXT) == levels
        assert scales.ranks(levels)
        table = pd.DataFrame({"grade": np.array(levels)[np.arange(60) % 4], "x": range(60)})
        assert TablePreprocessor().fit(table).codes_by_count() == {}


def test_words_that_mean_as_much_stand_side_by_side():
    levels = ["low", "Med", "medium", "HIGH"]
    assert in_order(levels[::-1], TEXT) == levels
    ranks = scales.ranks(levels)
    assert ranks["Med"] == ranks["medium"] < ranks["HIGH"]


def test_a_scale_names_no_word_twice_and_names_words_as_they_are_looked_for():
    paragraphs = scales._WRITTEN.read_text(encoding="utf-8").split("\n\n")
    for paragraph in paragraphs:
        ranks = [line for line in paragraph.strip().split("\n") if not line.startswith("#")]
        words = [word for rank in ranks for word in rank.split(", ")]
        assert [word for word, times in Counter(words).items() if times > 1] == []
        assert [word for word in words if scales.bare(word) != word] == []
    assert len(scales._scales()) > 40
    for scale in scales._scales():
        assert len(set(scale.values())) >= 3
