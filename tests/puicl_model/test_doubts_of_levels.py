"""Warnings of a fit about levels: look-alikes, bands made days, gaps among grades, rare ones."""

import re

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit

from puicl_model import TablePreprocessor


def test_levels_that_differ_in_case_alone_are_told_of_but_for_genotypes():
    levels = np.resize(["Yes", "yes", "No", "no"], N)
    with pytest.warns(UserWarning, match=r"only in case: a \('No' and 'no'\), b \('LOW' and 'low'"):
        fit(a=levels, b=np.resize(["LOW", "low", "high"], N), c=np.resize(["AA", "Aa", "aa"], N))


@pytest.mark.parametrize(
    "levels",
    [
        ["New York", "New\u00a0York"],
        ["New York", "New  York"],
        ["Z\u00fcrich", "Zu\u0308rich"],
        ["post\u200bcode", "postcode"],
        ["18\u201324", "18-24"],
        ["don't know", "don\u2019t know"],
    ],
)
def test_levels_that_look_alike_are_told_of(levels):
    said = ".*".join(re.escape(ascii(level)) for level in sorted(levels))
    with pytest.warns(UserWarning, match=rf"levels that look alike: a \({said}\); each is"):
        fit(a=np.resize([*levels, "other"], N))


def test_levels_that_look_different_are_not_told_of(recwarn):
    fit(a=np.resize(["10\u00b2", "102", "1-1", "11", "+", "-"], N))
    assert not recwarn


def test_bands_that_a_spreadsheet_took_for_days_are_told_of(recwarn):
    fit(a=np.resize(["0-4", "5-9", "10-14", "15-19"], N), b=np.resize(["May-12", "x-1", "1-2"], N))
    assert not recwarn
    with pytest.warns(UserWarning, match=r"days among bands: a \('(Oct-14|09-May)'\); spreadsh"):
        fit(a=np.resize(["0-4", "09-May", "Oct-14", "15-19"], N))


def doubts_of_grades(*levels):
    return TablePreprocessor().fit(pd.DataFrame({"a": np.resize(levels, N)})).doubts_


@pytest.mark.filterwarnings("ignore:grades")
def test_grades_with_gaps_where_their_first_one_would_be_are_told_of():
    for gap in (None, "None", np.nan):
        (told,) = doubts_of_grades("Mild", gap, "Moderate", "Severe")
        assert told.startswith("grades with missing cells: a; these are coded after the last")
    assert doubts_of_grades("mild", "moderate", "severe", "very severe") == []
    assert doubts_of_grades("none", "mild", None, "moderate", "severe") == []
    assert doubts_of_grades("low", "medium", "high", "very high", None) == []
    assert doubts_of_grades("mild", None, "severe") == []  # a column each


@pytest.mark.parametrize("word", ["nil", "n/d", "none"])
def test_numbers_that_become_rare_levels_beside_a_word_are_told_of(word):
    """Where the word has less than half of the cells, it is refused as a slip."""
    cells = np.random.default_rng(0).permutation(N * 10).astype(object)
    cells[: int(N * 6.5)] = word
    said = r"fewer than 3 rows, .* fill much of: a \(35%\); write all cells as numbers, and empty"
    with pytest.warns(UserWarning, match=said):
        fitted, out = fit(a=cells)
    assert fitted.kinds_ == {"a": "category"}
    assert len(np.unique(out["a"])) == 2


def test_words_and_numbers_that_become_rare_levels_are_told_of_apart():
    rare = np.arange(N * 10).astype(object)
    words = np.array([f"w{k}" for k in rare], dtype=object)
    rare[: int(N * 6.5)], words[: int(N * 6.5)] = "nil", "usual"
    fitted = TablePreprocessor()
    with pytest.warns(UserWarning, match="fill much of"):
        fitted.fit(pd.DataFrame({"a": rare, "b": words[::-1]}))
    of_numbers, of_words = fitted.doubts_
    assert "fill much of: a (35%); write all cells as numbers" in of_numbers
    assert of_words.endswith("fill much of: b (35%); use fewer groups to tell them apart")


@pytest.mark.parametrize(("n_rare", "told"), [(1, 0), (2, 1)])
def test_a_tenth_of_rare_levels_is_told_of_where_there_are_cells_enough(recwarn, n_rare, told):
    for n in (20, 19):
        levels = np.resize(["red", "green", "blue"], n).astype(object)
        levels[:n_rare] = ["teal", "pink"][:n_rare]
        fit(a=levels)
    assert len(recwarn) == told
