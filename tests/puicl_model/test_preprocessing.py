"""What `TablePreprocessor` does with any table: its names, missing cells, new rows and copies."""

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
