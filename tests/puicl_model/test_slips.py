"""Words among numbers and dates: slips, marks of nothing, codes."""

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor


def test_text_among_many_numbers_is_refused_with_its_place_and_marks_of_nothing_are_not():
    values = numbers().astype(object)
    values[7] = "?"
    fit(a=values)
    values[9] = "1,5"
    with pytest.raises(ValueError, match="column a: row 9 holds '1,5', not a number"):
        fit(a=values)


@pytest.mark.parametrize(("n_slips", "few"), [(9, True), (10, False), (24, False), (25, None)])
def test_slips_are_less_than_a_fifth_and_marks_of_nothing_less_than_half(n_slips, few):
    cells = pd.Series(numbers()).round(3).astype(str).tolist() + [f"{k}.5" for k in range(10)]
    cells[:n_slips] = ["n/d"] * n_slips
    if few is None:
        TablePreprocessor(rare_below=1, drop_identifiers=False).fit(pd.DataFrame({"a": cells}))
        return
    others = "nearly all others" if few else "most others"
    with pytest.raises(ValueError, match=f"row 0 holds 'n/d', not a number, as {others} are"):
        fit(a=cells)


@pytest.mark.parametrize(
    ("marks", "refused"),
    [(["n/d", "nil"], True), (["n/d", "?!", "no"], False), (["-", "nil"], True)],
)
@pytest.mark.filterwarnings("ignore:left out")
def test_two_marks_of_nothing_are_slips_and_three_are_levels(marks, refused):
    cells = np.array([f"{1.5 * k}" for k in range(60)], dtype=object)
    cells[::3] = np.resize(marks, 20)
    table = pd.DataFrame({"a": cells})
    if refused:
        (odd, *_) = (row for row, cell in enumerate(cells) if cell in ("n/d", "nil"))
        said = f"row {odd} holds '{cells[odd]}', not a number, as most others"
        with pytest.raises(ValueError, match=said):
            TablePreprocessor().fit(table)
    else:
        TablePreprocessor().fit(table)


@pytest.mark.parametrize(
    ("odd", "refused"),
    [
        (["V57", "E819.2", "K35"], None),
        (["V57", "E819.2", "K35", "0042T"], None),
        (["V57", "E819", "E819"], "V57"),  # two of them
        (["136A", "12B", "7C"], "136A"),  # 180H may be a number that is marked as high
        (["V57", "E819", "K35", "unknown"], "V57"),
        (["EUR50", "EUR70", "USD90"], "EUR50"),
    ],
)
def test_codes_with_a_letter_first_among_numbers_are_categories_and_told(odd, refused):
    """Whether they are a tenth of a list of codes or a third, as they are in other tables."""
    cells = np.resize([f"{code:03}" for code in range(100, 130)], 10 * N).astype(object)
    cells[: 10 * len(odd) : 10] = odd
    table = pd.DataFrame({"a": cells})
    if refused:
        with pytest.raises(ValueError, match=f"row 0 holds '{refused}', not a number") as raised:
            TablePreprocessor().fit(table)
        names_rows = "leave the column out if it only names rows"
        assert (names_rows in str(raised.value)) == (refused != "EUR50")
        return
    with pytest.warns(UserWarning, match=r"taken for categories: a \(such as 'V57'\)"):
        fitted = TablePreprocessor().fit(table)
    assert fitted.kinds_ == {"a": "category"}


@pytest.mark.parametrize("kind", ["number", "date"])
def test_codes_among_measured_numbers_or_dates_are_slips(kind):
    """Such a column was left out as names, or dates were made categories, for three error codes."""
    measured = np.random.default_rng(0).normal(size=10 * N).round(4).astype(object)
    days = pd.date_range("2021-01-01", periods=50).strftime("%Y-%m-%d").to_numpy(object)
    cells = measured if kind == "number" else np.resize(days, 10 * N)
    cells[:3] = ["E01", "E02", "E07"]
    with pytest.raises(ValueError, match=f"column a: row 0 holds 'E01', not a {kind}, as nearly"):
        TablePreprocessor().fit(pd.DataFrame({"a": cells}))


def test_a_place_that_is_told_is_the_rows_whatever_the_index():
    cells = numbers().astype(object)
    cells[7] = "1,5"
    table = pd.DataFrame({"a": cells}, index=np.arange(N)[::-1] + 100)
    with pytest.raises(ValueError, match="column a: row 7 holds '1,5'"):
        TablePreprocessor().fit(table)


@pytest.mark.parametrize(
    ("n_words", "why"), [(20, "numbers mixed with words"), (21, "text that names")]
)
def test_numbers_beside_several_words_are_left_out_as_such(n_words, why):
    """One or two words would be refused with their place."""
    cells = numbers().astype(object)
    cells[:n_words] = np.resize(["unknown", "refused", "not done"], n_words)
    with pytest.warns(UserWarning, match=rf"left out: a \({why}"):
        TablePreprocessor().fit(pd.DataFrame({"a": cells, "b": numbers(1)}))
