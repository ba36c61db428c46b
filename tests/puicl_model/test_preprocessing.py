import datetime
import json
import re

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor


def test_columns_that_come_out_have_different_names():
    """One column may be named as another's level."""
    table = pd.DataFrame({"a": np.resize(["x", "y", "z"], N), "a = x": numbers()})
    fitted = TablePreprocessor().set_output(transform="pandas")
    out = fitted.fit_transform(table)
    assert list(out) == ["a = x", "a = y", "a = z", "a = x (2)"]
    np.testing.assert_array_equal(out["a = x (2)"], table["a = x"])


def test_an_empty_cell_is_missing_whatever_type_its_frame_gives_it():
    columns = {
        "duration": pd.to_timedelta(np.arange(N) % 7, unit="h"),
        "date": pd.date_range("2021-03-01", periods=N, freq="5h"),
        "yes": np.arange(N) % 3 == 0,
        "count": np.arange(N) % 5,
    }
    fitted, _ = fit(**columns)
    rows = [
        fitted.transform(pd.DataFrame({name: [nothing] for name in columns}))
        for nothing in (pd.NaT, None, np.nan, "", pd.NA)
    ]
    for row in rows[1:]:
        np.testing.assert_array_equal(row, rows[0])


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


def test_categorical_features_may_be_a_mask():
    table = pd.DataFrame({"a": np.arange(N) % 4, "b": np.arange(N) % 5})
    fitted = TablePreprocessor(categorical_features=[False, True]).fit(table)
    assert fitted.kinds_ == {"a": "number", "b": "category"}
    by_name = TablePreprocessor(categorical_features=["b"]).fit(table[["b", "a"]])
    assert by_name.kinds_ == {"b": "category", "a": "number"}
    with pytest.raises(ValueError, match="mask of 3 columns, but X has 2"):
        TablePreprocessor(categorical_features=np.array([True] * 3)).fit(table)


def test_constant_empty_and_duplicate_columns_are_left_out_silently(recwarn):
    fitted, out = fit(a=numbers(), one=5, none=None, again=numbers(), zero=[0.0, -0.0] * (N // 2))
    assert list(out) == ["a"]
    assert fitted.dropped_ == {
        "one": "constant",
        "none": "empty",
        "again": "equal to a",
        "zero": "constant",
    }
    assert not recwarn.list


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("a", "red", "column a: row 0 holds 'red', not a number"),
        ("a", np.inf, "column a: row 0 holds infinity"),
        ("a", datetime.date(2020, 1, 1), "column a: row 0 holds"),
        ("d", "soon", "column d: row 0 holds 'soon', not a date"),
        ("d", "today", "column d: row 0 holds 'today', not a date"),
        ("d", "03.04.2024", "column d: row 0 holds '03.04.2024', not a date; text must be like"),
        ("d", 20240531, "column d: row 0 holds 20240531, not a date"),
        ("d", np.int64(20240531), "column d: row 0 holds 20240531, not a date"),
        ("d", True, "column d: row 0 holds True, not a date"),
    ],
)
def test_new_cells_of_another_kind_are_refused_with_their_place(column, cell, message):
    fitted, _ = fit(a=numbers(), d=pd.date_range("2021-01-01", periods=N))
    row = {"a": [1.0], "d": [pd.Timestamp("2021-01-01")], column: [cell]}
    with pytest.raises(ValueError, match=message):
        fitted.transform(pd.DataFrame(row, dtype=object))


def test_rows_are_transformed_each_by_itself_and_state_survives_json():
    words = np.random.default_rng(0).choice(["x", "y", "z"], N)
    table = pd.DataFrame({"a": numbers(), "w": words, "d": pd.date_range("2021", periods=N)})
    fitted = TablePreprocessor()
    out = fitted.fit_transform(table)
    alone = np.concatenate([fitted.transform(table.iloc[[i]]) for i in range(N)])
    np.testing.assert_array_equal(alone, out)
    again = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    np.testing.assert_array_equal(again.transform(table), out)
    with pytest.raises(ValueError, match="feature names should match"):
        again.transform(table[["w", "a", "d"]])


@pytest.mark.parametrize("mark", ["NA", "n/a", "None", "#N/A", "<NA>", "NULL", "?"])
def test_what_files_write_for_nothing_is_missing(mark):
    known = [f"{value:.3f}" for value in numbers()]
    written = [mark if row % 4 == 0 else text for row, text in enumerate(known)]
    fitted, out = fit(a=written, b=numbers(1))
    assert fitted.kinds_["a"] == "number"
    np.testing.assert_array_equal(out["a is missing"], np.arange(N) % 4 == 0)


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


def test_a_masked_word_is_missing_whatever_the_array_fills_in():
    words = np.array([["a"], ["b"], ["a"], ["b"]])
    masked = np.ma.array(words, mask=[[False], [False], [True], [False]], fill_value="b")
    expected = TablePreprocessor().fit_transform(np.array([["a"], ["b"], [None], ["b"]], object))
    np.testing.assert_array_equal(TablePreprocessor().fit_transform(masked), expected)


def test_columns_whose_names_are_no_text_keep_them_in_what_is_told():
    rng = np.random.default_rng(0)
    names = pd.MultiIndex.from_product([["before", "after"], ["dose", "count"]])
    for columns, shown in (
        (names, "('after', 'count')"),
        ([2019, 2021, 2020, 2022], "2022"),
        (range(4), "x3"),  # mere positions
        (list("abcd"), "d"),
    ):
        x = pd.DataFrame(rng.normal(size=(30, 4)), columns=columns).astype(object)
        x[x.columns[3]] = 1.0
        fitted = TablePreprocessor().fit(x)
        assert fitted.dropped_ == {shown: "constant"}
        again = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
        assert list(again.get_feature_names_out()) == list(fitted.get_feature_names_out())
        x.iloc[4, 0] = "strange"
        first = next(iter(fitted.kinds_))
        for preprocessor in (fitted, again):
            with pytest.raises(ValueError, match=f"column {re.escape(first)}"):
                preprocessor.transform(x)
    # A number in categorical_features is a position.
    years = pd.DataFrame(rng.integers(0, 3, size=(60, 3)), columns=[2, 1, 0])
    fitted = TablePreprocessor(categorical_features=[0]).fit(years)
    assert fitted.kinds_ == {"2": "category", "1": "number", "0": "number"}


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


@pytest.mark.parametrize("kind", ["float64", "string[pyarrow]"])
def test_columns_are_read_without_a_look_at_each_cell_where_that_is_slow(monkeypatch, kind):
    """Of a large table that was most of what reading its numbers took, and half of its text's."""
    if kind != "float64":
        pytest.importorskip("pyarrow")
    table = pd.DataFrame({"a": pd.Series(np.resize([1.5, 2.5, 7.0], N)).astype(kind)})
    where = pd.Series if kind == "float64" else pd.arrays.ArrowStringArray
    each = where.__iter__

    def looked_at(self):
        assert len(self) < N, "cell by cell"  # names of columns may be
        return each(self)

    monkeypatch.setattr(where, "__iter__", looked_at)
    fitted = TablePreprocessor().fit(table)
    assert fitted.kinds_ == {"a": "number"}
    fitted.transform(table)


@pytest.mark.parametrize("nothing", [None, np.nan, " ", "?"])
@pytest.mark.parametrize(("n_blank", "told"), [(1, False), (2, True)])
def test_rows_without_an_entry_are_told_of(recwarn, nothing, n_blank, told):
    rows = pd.DataFrame({"a": np.arange(150) % 7 * 1.5, "b": np.arange(150) % 11}).astype(object)
    rows.iloc[20 : 20 + n_blank] = nothing
    TablePreprocessor().fit(rows)
    said = [str(warning.message) for warning in recwarn]
    assert [told for told in said if told.startswith("2 of 150 rows are empty (row 20 is the")] == (
        said if told else []
    )
    assert bool(said) == told
    recwarn.clear()
    TablePreprocessor().fit(rows[["a"]])  # a missing cell
    assert not recwarn


@pytest.mark.parametrize(("n_copies", "told"), [(3, 0), (4, 1)])
def test_copies_of_rows_are_told_of(recwarn, n_copies, told):
    rows = pd.DataFrame({"a": numbers(), "b": np.arange(N) % 7 * 1.0, "c": np.arange(N) % 3})
    again = pd.concat([rows.iloc[: N - n_copies], rows.iloc[:n_copies]], ignore_index=True)
    TablePreprocessor().fit(again)
    assert len(recwarn) == told
    if told:
        assert str(recwarn[0].message).startswith("4 of 40 rows are copies of others")


def test_rows_that_are_equal_by_chance_are_no_copies(recwarn):
    rng = np.random.default_rng(0)
    levels = pd.DataFrame({name: rng.integers(0, 3, 400) for name in "abcd"})
    rounded = pd.DataFrame({"a": rng.normal(size=400).round(1), "b": rng.integers(0, 2, 400)})
    for table in (levels, rounded, rounded[["a"]]):
        assert table.duplicated().mean() > 0.3
        TablePreprocessor().fit(table)
    assert not recwarn
