"""Text that stands for nothing beside numbers and dates: missing there, a level among words."""

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor

SAID = (
    *("unknown", "Unknown", "missing", "not available", "N.A.", "n.a.", "na", "N/a", "NaT", "nan."),
    *("(blank)", "Refused", "don't know", "#DIV/0!", "#REF!", "#NAME?", "#N/D", "#NV", "#¡VALOR!"),
    *(".", "..", "...", "…"),
)
MARKS = ("-", "--", "---", "\u2013", "\u2014", "_", "*", "**", ":")

MANY = {
    "numbers": [f"{1.5 * k}" for k in range(N)],
    "dates": [str(day.date()) for day in pd.date_range("2020-01-01", periods=N)],
    "times": [f"{9 + k // 60}:{k % 60:02}" for k in range(N)],
    "money": [f"${1000 + 7 * k:,}.50" for k in range(N)],
    "days": [f"{1 + k % 28}.{1 + k % 12}.{1990 + k % 30}" for k in range(N)],
}


def with_holes(cells, hole, rows=slice(0, N, 4)):
    cells = np.array(cells, dtype=object)
    cells[rows] = hole
    return cells


@pytest.mark.parametrize("kind", MANY)
@pytest.mark.parametrize("placeholder", [*SAID, *MARKS])
@pytest.mark.filterwarnings("ignore:taken for missing cells")
def test_placeholders_among_numbers_and_dates_are_missing_cells(kind, placeholder):
    """To the bits of the column whose cells are empty there, at the fit and in new rows."""
    empty, out = fit(a=with_holes(MANY[kind], None))
    fitted, same = fit(a=with_holes(MANY[kind], placeholder))
    pd.testing.assert_frame_equal(same, out, check_exact=True)
    assert fitted.kinds_ == empty.kinds_
    assert "a is missing" in same
    rows = pd.DataFrame({"a": with_holes(MANY[kind], f" {placeholder} ", [1, 5])})
    np.testing.assert_array_equal(
        fitted.transform(rows), empty.transform(rows.replace(f" {placeholder} ", None))
    )


@pytest.mark.parametrize("mark", MARKS)
def test_marks_that_may_stand_for_a_value_are_told_of_and_words_are_not(recwarn, mark):
    fit(a=with_holes(with_holes(MANY["numbers"], mark), "unknown", [1]), b=numbers())
    (told,) = recwarn
    assert str(told.message) == (
        f"taken for missing cells: a ({mark!r}); where they stand for 0 or the like, write that"
    )


def test_marks_of_few_values_are_one_of_them_and_words_for_nothing_are_not(recwarn):
    few = np.resize(np.array(["1", "2", "3", "4", "5"], dtype=object), N)
    columns = {"a": with_holes(few, "-"), "b": with_holes(few, "unknown")}
    fitted, _ = fit(**columns, c=with_holes(few, "."), d=numbers())
    kinds = {"a": "category", "b": "number", "c": "equal to b", "d": "number"}
    assert fitted.kinds_ == kinds
    assert fitted.levels_ == {"a": ["1", "2", "3", "4", "5", "-"]}
    assert not recwarn.list


def test_numbers_of_a_workbook_or_an_array_beside_placeholders_are_numbers_too():
    cells = np.random.default_rng(0).normal(size=N).round(2).astype(object)
    empty, out = fit(a=with_holes(cells, np.nan))
    fitted, same = fit(a=with_holes(cells, "#VALUE!"))
    assert fitted.kinds_ == empty.kinds_ == {"a": "number"}
    pd.testing.assert_frame_equal(same, out, check_exact=True)


@pytest.mark.parametrize(
    ("word", "kind"),
    [("green", "category"), ("none", "refused"), ("other", "refused"), ("#12", "refused")],
)
def test_another_word_leaves_placeholders_what_they_are(word, kind):
    """Among words they are levels, and where a word is refused it is named before them."""
    if kind == "category":
        cells = np.resize(np.array(["red", word, "unknown", "-"], dtype=object), N)
        fitted, _ = fit(a=cells)
        assert fitted.levels_ == {"a": ["-", word, "red", "unknown"]}
        return
    cells = with_holes(with_holes(MANY["numbers"], "unknown", [0, 1]), word, [7])
    with pytest.raises(ValueError, match=f"column a: row 7 holds '{word}', not a number"):
        fit(a=cells)


def test_a_column_of_placeholders_alone_says_nothing():
    for word in ("unknown", "-", "."):
        fitted, _ = fit(a=np.full(N, word, dtype=object), b=numbers())
        assert fitted.dropped_ == {"a": "constant"}


def test_named_categories_and_categoricals_keep_placeholders_as_levels():
    cells = with_holes(np.resize(np.array(["1", "2", "3"], dtype=object), N), "unknown")
    table = pd.DataFrame({"a": cells})
    named = TablePreprocessor(categorical_features=["a"]).fit(table)
    typed = TablePreprocessor().fit(table.astype("category"))
    assert named.levels_ == typed.levels_ == {"a": ["1", "2", "3", "unknown"]}


def test_row_numbers_and_identifiers_are_found_beside_placeholders():
    rows = with_holes([str(row) for row in range(N)], "n.a.", [3])
    with pytest.warns(UserWarning, match=r"left out: a \(row number\)"):
        fit(a=rows, b=numbers())
    owners = with_holes([str(997 * row) for row in range(N)], "n.a.", [3])
    with pytest.warns(UserWarning, match="taken for numbers: owner_id"):
        fit(owner_id=owners, b=numbers())


@pytest.mark.filterwarnings("error")
def test_new_dates_with_placeholders_have_the_clock_of_the_fit():
    days = [f"2020-01-{1 + k % 28:02}T10:{k:02}:00Z" for k in range(N)]
    fitted, out = fit(d=with_holes(days, "unknown", [3]))
    new = fitted.transform(pd.DataFrame({"d": [days[0], "-", "unknown"]}))
    np.testing.assert_array_equal(new, out.to_numpy()[[0, 3, 3]])
