"""Warnings of a fit about its columns and rows.

They name columns that are left out or may be read as the wrong kind, and rows that are empty or
duplicated. Each function returns a sentence, or an empty string.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from puicl_model.preprocessing.judging import MIN_ROWS_TO_JUDGE
from puicl_model.preprocessing.reading import look
from puicl_model.preprocessing.scales import lacks_none
from puicl_model.preprocessing.spelled_dates import MONTH

LEAVE_OUT = "leave out columns that only name the rows"
# Advice on how to keep row numbers, appended to the sentence on columns left out.
KEEP_THEM = ", or preprocessing=TablePreprocessor(drop_identifiers=False)"
ROW_NUMBER = "row number"
FREE_TEXT = "text that names rows"
RARE = "no level with enough rows"
SPELL = "write them like 1234.5 or 2024-12-31"
MISSPELLED = f"text that looks like numbers or dates: {SPELL}"
# Warn if at least this share of a category's cells is in rare levels. Among the 329 categories of
# 111 real tables none has more than .01.
_MANY_RARE = 0.1
# Warn if at least this share of all rows is empty.
_MANY_BLANK = 0.01
# Warn if at least this share of all rows are copies that are not equal by chance: one column must
# have nearly as many values as there are different rows, and the other columns together must
# seldom be equal. None of 111 real tables has such copies.
_MANY_COPIES, _NEARLY_ALL, _SELDOM = 0.1, 0.7, 0.2
NUMBERS_AND_WORDS = "numbers mixed with words: correct or empty the words"
# Marks the sentence on copies, which `puicl_model.doubts` replaces if it knows more.
COPIES = "rows are copies of others"
_WARNED = (ROW_NUMBER, FREE_TEXT, RARE, MISSPELLED, NUMBERS_AND_WORDS)
# Days to which spreadsheets convert bands such as 5-9.
_DAY_OF_A_BAND = re.compile(rf"\d{{1,2}}-{MONTH}|{MONTH}-\d{{1,2}}", re.IGNORECASE)
_BAND = re.compile(r"\d+ ?[-\u2013] ?\d+")


def left_out(dropped: Mapping[str, str]) -> str:
    """On columns left out, perhaps against the user's intention; dropped: each column's reason."""
    told = _named({name: why for name, why in dropped.items() if why in _WARNED})
    keep_them = KEEP_THEM if ROW_NUMBER in dropped.values() else ""
    return told and f"left out: {told}; to use them, give numbers or groups{keep_them}"


def taken_for_categories(misspelled: Mapping[str, Any]) -> str:
    """On columns of text that looks like numbers or dates; misspelled: a cell of each column."""
    told = _named(misspelled, "such as {!r}")
    return told and f"taken for categories: {told}; if these are numbers or dates, {SPELL}"


def of_words_beside(words: Mapping[str, Sequence[str]]) -> str:
    """On words that keep columns from being read as numbers or dates; words: of each column."""
    told = _words_named(words)
    return told and (
        f"not read as numbers or dates because of single words: {told}; empty these cells, or "
        "replace the words with what they stand for"
    )


def of_marks(marks: Mapping[str, Sequence[str]]) -> str:
    """On marks that were taken for missing cells; marks: of each column."""
    told = _words_named(marks)
    return told and (
        f"taken for missing cells: {told}; where they stand for 0 or the like, write that"
    )


def of_rare_levels(shares: Mapping[str, float], rare_below: int, *, numbers: bool) -> str:
    """On categories with many cells in rare levels; shares: of these cells, for each column.

    numbers: whether the rare levels are numbers. A column of numbers is a category if it also holds
    words, or numbers in another notation.
    """
    many = {name: share for name, share in shares.items() if share >= _MANY_RARE}
    told = _named(many, "{:.0%}")
    advice = "use fewer groups to tell them apart"
    if numbers:
        advice = "write all cells as numbers, and empty those without a value, to have numbers"
    return told and (
        f"levels of fewer than {rare_below} rows, which are read as one level, fill much of: "
        f"{told}; {advice}"
    )


def taken_for_numbers(identifiers: Sequence[str]) -> str:
    """On columns of numbers that may be identifiers."""
    told = ", ".join(identifiers)
    return told and f"taken for numbers: {told} (whole, each in one row only); {LEAVE_OUT}"


def of_groups(entries: Mapping[str, int]) -> str:
    """On features whose names say which rows are of one person or place; entries: how many."""
    told = _named(entries, "{} entries")
    return told and (
        f"by their names these say which rows belong together, not what they are like: {told}; "
        f"{LEAVE_OUT}"
    )


def of_codes(codes: Mapping[str, str]) -> str:
    """On columns of numbers that are written as codes are; codes: one of each column."""
    told = _named(codes, "such as {}")
    return told and (
        f"taken for numbers: {told}; if these are codes, name the columns in categorical_features"
    )


def of_nothing(values: Mapping[str, Any]) -> str:
    """On numbers and dates that may stand for missing cells; values: one for each column."""
    told = _named({name: _plain(value) for name, value in values.items()})
    return told and (
        f"far from all others and repeated: {told}; if it stands for a missing cell, empty it"
    )


def of_days_as_numbers(values: Mapping[str, float]) -> str:
    """On columns of numbers that all read as days without separators; values: one for each."""
    told = _named(values, "such as {:.0f}")
    return told and f"taken for numbers: {told}; if these are days, write them like 2024-05-31"


def of_points(values: Mapping[str, float]) -> str:
    """On columns of numbers whose points may separate thousands; values: one for each column."""
    told = _named(values, "such as {:.3f}")
    return told and (
        f"points that may separate thousands: {told}, beside whole numbers below 1,000; if they "
        f"do, {SPELL}"
    )


def _named(columns: Mapping[str, Any], form: str = "{}") -> str:
    """List the columns' names, each followed by its value formatted by `form`, in brackets."""
    return ", ".join(f"{name} ({form.format(what)})" for name, what in columns.items())


def _words_named(words: Mapping[str, Sequence[str]]) -> str:
    return _named({name: " and ".join(map(repr, theirs)) for name, theirs in words.items()})


def _plain(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) < 1e15 else f"{value:g}"


def of_two_clocks(names: Iterable[str]) -> str:
    """On columns in which only some dates have a time zone."""
    told = ", ".join(names)
    return told and f"dates with and without a time zone: {told}; the latter are read as UTC"


def of_one_word(levels: Mapping[str, Sequence[str]]) -> str:
    """On levels that differ only in case; levels: of each column.

    Levels of one or two letters are skipped (except "no"), since they may be genotypes: AA, Aa, aa.
    """
    told = {
        name: " and ".join(map(repr, alike[0]))
        for name, theirs in levels.items()
        if (alike := [k for w, k in _alike(theirs, str.casefold).items() if w[2:] or w == "no"])
    }
    return _each_a_category("differ only in case", told)


def of_one_look(levels: Mapping[str, Sequence[str]]) -> str:
    """On levels that differ only in blanks, dashes, quotes or invisible marks; levels: of each."""
    told = {
        name: " and ".join(map(ascii, alike[0]))
        for name, theirs in levels.items()
        if (alike := list(_alike(theirs, look).values()))
    }
    return _each_a_category("look alike", told)


def _alike(levels: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    """Group those `levels` that share a `key` with another level, by this key."""
    having = defaultdict(list)
    for level in levels:
        having[key(level)].append(level)
    return {shared: theirs for shared, theirs in having.items() if len(theirs) > 1}


def _each_a_category(how: str, alike: Mapping[str, str]) -> str:
    told = _named(alike)
    return told and (f"levels that {how}: {told}; each is a separate category, so write them alike")


def of_days_among_bands(levels: Mapping[str, Sequence[str]]) -> str:
    """On bands some of which a spreadsheet converted to days; levels: of each column."""
    found = {}
    for name, theirs in levels.items():
        days = [level for level in theirs if _DAY_OF_A_BAND.fullmatch(level)]
        if days and sum(bool(_BAND.fullmatch(level)) for level in theirs) > 1:
            found[name] = days[0]
    told = _named(found, "{!r}")
    return told and (
        f"days among bands: {told}; spreadsheets turn bands such as 10-14 into days. "
        "Write all as bands to keep their order"
    )


def of_none(levels: Mapping[str, Sequence[str]]) -> str:
    """On grades with missing cells but without a grade `none`; levels: of each such column."""
    told = ", ".join(name for name, theirs in levels.items() if lacks_none(theirs))
    return told and (
        f"grades with missing cells: {told}; these are coded after the last grade. If "
        "they held None, which readers take for a missing cell, write none instead"
    )


def of_blank_rows(blank: np.ndarray) -> str:
    """On empty rows, as spreadsheets save them below a table; blank: boolean [n]."""
    if not _MANY_BLANK <= blank.mean() < 1:
        return ""
    return (
        f"{blank.sum():,} of {len(blank):,} rows are empty (row {int(np.argmax(blank))} is the "
        "first): they still count as rows and change the estimated share of positives; drop them"
    )


def of_copies(columns: Sequence[np.ndarray]) -> str:
    """On rows that occur more than once, as in joined tables; columns: [n] each.

    Says nothing if rows may be equal by chance, as in tables of levels and counts only.
    """
    if not columns or len(columns[0]) < MIN_ROWS_TO_JUDGE:
        return ""
    rows = pd.DataFrame(dict(enumerate(columns)))
    different = rows.drop_duplicates()
    n_copies = len(rows) - len(different)
    if n_copies < _MANY_COPIES * len(rows) or len(columns) == 1:
        return ""
    values = different.nunique()
    others = different.drop(columns=values.idxmax()).value_counts() / len(different)
    if values.max() < _NEARLY_ALL * len(different) or (others**2).sum() > _SELDOM:
        return ""
    return (
        f"{n_copies:,} of {len(rows):,} {COPIES}: rows must be independent, and copies distort "
        "the estimated share of positives; keep one of each"
    )
