"""Columns that name rows or group them, and numbers that may be codes: left out, or told of."""

import re

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor


def test_free_text_names_and_row_numbers_are_left_out_with_a_warning_that_names_them():
    columns = {
        "a": numbers(),
        "who": [f"person {i}" for i in range(N)],
        "index": np.random.default_rng(0).permutation(N) + 1000,
    }
    with pytest.warns(UserWarning, match=r"who \(text that names rows\), index \(row number\)"):
        fitted, out = fit(**columns)
    assert list(out) == ["a"]
    assert fitted.dropped_ == {"who": "text that names rows", "index": "row number"}
    with pytest.warns(UserWarning, match=r"left out: who \(no level with enough rows\); to use"):
        kept = TablePreprocessor(drop_identifiers=False).fit(pd.DataFrame(columns))
    assert list(kept.get_feature_names_out()) == ["a", "index"]


@pytest.mark.parametrize(
    ("column", "advice"), [("index", r"\(drop_identifiers=False\)$"), ("who", "numbers or groups$")]
)
def test_only_row_numbers_can_be_kept_by_a_switch(column, advice):
    ways = {"who": [f"person {i}" for i in range(N)], "index": np.arange(N)}
    with pytest.warns(UserWarning, match=advice):
        fit(a=numbers(), **{column: ways[column]})


@pytest.mark.parametrize("form", [int, float, str, "padded", "Int64"])
def test_row_numbers_are_left_out_in_whatever_form_they_come(form):
    numbers_of_rows = pd.Series(np.random.default_rng(0).permutation(N) + 1)
    written = (
        numbers_of_rows.map("{:05d}".format) if form == "padded" else numbers_of_rows.astype(form)
    )
    with pytest.warns(UserWarning, match=r"index \(row number\)"):
        fit(index=written, a=numbers())
    fitted, _ = fit(gaps=numbers_of_rows * 2, a=numbers(), halves=numbers_of_rows / 2)
    assert fitted.dropped_ == {}


PEOPLE = np.random.default_rng(1).permutation(np.repeat(np.arange(30), 4)) * 7 + 1000


@pytest.mark.parametrize("name", ["patient_id", "ID", "shopId", "mrn", "user id"])
@pytest.mark.parametrize("form", [int, float, "p{}".format])
def test_columns_that_say_which_rows_belong_together_are_told_of(name, form):
    sentence = f"not what they are like: {name} \\(30 entries\\); leave out columns that only"
    with pytest.warns(UserWarning, match=sentence):
        fitted, _ = fit(**{name: [form(person) for person in PEOPLE], "a": np.arange(120) % 7})
    assert fitted.dropped_ == {}


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("acid", PEOPLE),  # another word
        ("id", PEOPLE + 0.5),  # measured
        ("uuid", np.arange(120)[::-1] ** 2),  # one row each
        ("visit_id", pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(120), unit="D")),
        ("shop_id", PEOPLE % 20),  # few of many rows each
        ("shop_id", np.resize(np.arange(21), 420)),
    ],
)
def test_other_columns_are_not_taken_for_groups_of_rows(name, column, recwarn):
    fit(**{name: column, "a": np.linspace(0, 1, len(column))})
    assert not recwarn


def test_of_a_group_column_that_is_left_out_nothing_more_is_told(recwarn):
    pairs = [f"p{i // 2}" for i in range(120)]
    fitted, _ = fit(patient_id=pairs, a=np.linspace(0, 1, 120))
    assert list(fitted.dropped_) == ["patient_id"]
    assert len(recwarn) == 1


def test_a_declared_category_may_group_the_rows(recwarn):
    TablePreprocessor(["shop_id"]).fit(pd.DataFrame({"shop_id": PEOPLE}))
    assert not recwarn


IDS = np.random.default_rng(0).permutation(10**6)[:N]


@pytest.mark.parametrize(
    "name", ["id", "patient_id", "Case No", "patient-ID", "customerNr", "MRN", "key", "studyId"]
)
def test_numbers_that_may_name_rows_are_doubted_by_their_name(name):
    with pytest.warns(UserWarning, match=rf"^taken for numbers: {name} \(whole, each in one row"):
        fitted = TablePreprocessor().fit(pd.DataFrame({name: IDS}))
    assert fitted.kinds_ == {name: "number"}


def codes(form: str, n: int = N) -> list[str]:
    return [format(7 * (k + 1) % 30, form) for k in range(n)]


def test_numbers_written_like_codes_are_told_of_unless_they_are_called_categories(recwarn):
    table = pd.DataFrame({"zip": [None, *codes("05", N - 1)]})
    message = (
        r"^taken for numbers: zip \(such as 00007\); if these are codes, name the columns in "
        "categorical_features$"
    )
    with pytest.warns(UserWarning, match=message) as told:
        fitted = TablePreprocessor().fit(table)
    assert len(told) == 1
    assert fitted.kinds_ == {"zip": "number"}
    recwarn.clear()
    fitted = TablePreprocessor(categorical_features=["zip"], rare_below=1).fit(table)
    assert fitted.kinds_ == {"zip": "category"}
    assert not recwarn


@pytest.mark.parametrize(
    "column",
    [
        codes("02"),  # a day or an hour
        codes(""),
        ["0123", *codes("05")],
        [0, *codes("05")],
        [f"1{code}" for code in codes("02")],
        [f"{code}.5" for code in codes("03")],
        codes("05", 19),
    ],
    ids=["two digits", "no zeros", "lengths", "a number", "ones", "fractions", "few"],
)
def test_other_numbers_are_not_told_of(column, recwarn):
    fitted = TablePreprocessor().fit(pd.DataFrame({"a": column}))
    assert fitted.kinds_ == {"a": "number"}
    assert not recwarn


def test_numbers_that_may_name_rows_are_doubted_by_zeros_in_front_and_others_are_not(recwarn):
    with pytest.warns(UserWarning, match="taken for numbers: ward") as told:
        TablePreprocessor().fit(pd.DataFrame({"ward": [f"{number:07d}" for number in IDS]}))
    assert len(told) == 1
    recwarn.clear()
    twice = np.where(np.arange(N) == 1, IDS[0], IDS)
    TablePreprocessor().fit(
        pd.DataFrame(
            {"paid": IDS, "valid": IDS + 1, "key": twice, "nr": IDS / 7, "no": IDS % 2 == 0}
        )
    )
    TablePreprocessor().fit(pd.DataFrame({"id": IDS[:19]}))
    assert not recwarn


def test_a_row_number_with_a_missing_cell_is_one():
    rows = np.arange(N, dtype=float)
    rows[[3, N - 1]] = np.nan
    with pytest.warns(UserWarning, match="left out: id \\(row number\\)"):
        fitted, _ = fit(id=rows, a=numbers())
    assert fitted.kinds_["id"] == "row number"
    rows[: N // 5] = np.nan  # too many to tell
    assert fit(id=rows, a=numbers())[0].kinds_["id"] == "number"


@pytest.mark.parametrize(
    "name", ["Unnamed: 0", "Unnamed: 0.1", "", "index", "__index_level_0__", "level_0"]
)
def test_an_index_with_gaps_is_left_out_with_a_warning(name):
    rng = np.random.default_rng(0)
    rows = rng.choice(1000, 100, replace=False)
    table = pd.DataFrame({name: rows, "a": rng.normal(size=100), "amount": rows})
    with pytest.warns(UserWarning, match=rf"left out: {re.escape(name)} \(row number\)"):
        fitted = TablePreprocessor().fit(table)
    assert fitted.kinds_ == {name: "row number", "a": "number", "amount": "number"}
    twice = table.assign(**{name: rows // 2})  # not all distinct: something was measured
    assert TablePreprocessor().fit(twice).kinds_[name] == "number"


@pytest.mark.parametrize(
    ("n", "distinct", "kind"),
    [
        (40, 20, "category"),
        (40, 21, "text that names rows"),
        (20, 11, "text that names rows"),
        (19, 11, "category"),
    ],
)
@pytest.mark.filterwarnings("ignore:left out")
def test_text_names_rows_where_more_than_half_of_twenty_or_more_cells_differ(n, distinct, kind):
    words = np.resize([f"w{chr(97 + level)}" for level in range(distinct)], n).tolist()
    cells = words + [None] * n  # which do not count
    fitted = TablePreprocessor(rare_below=1).fit(pd.DataFrame({"a": cells}))
    assert fitted.kinds_["a"] == kind


@pytest.mark.filterwarnings("ignore:left out")
def test_row_numbers_are_whole_have_no_gap_and_are_twenty_or_more():
    def kind(values, name="a"):
        return TablePreprocessor().fit(pd.DataFrame({name: values})).kinds_[name]

    rows = np.random.default_rng(0).permutation(N)
    assert kind(rows) == "row number"
    assert kind(np.where(rows == N - 1, N, rows)) == "number"  # one gap
    assert kind(rows / 2) == kind(rows / 2, "index") == "number"
    assert (kind(np.arange(20)), kind(np.arange(19))) == ("row number", "number")
