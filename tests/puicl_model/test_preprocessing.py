import datetime
import json
import re
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from puicl_model import TablePreprocessor
from puicl_model.preprocessing import (
    ROTATED,
    SCALINGS,
    TURNED,
    fit_scaling,
    scaling_from_state,
)

N = 40


def numbers(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=N)


def fit(**columns) -> tuple[TablePreprocessor, pd.DataFrame]:
    """Fitted, and its output under its own names."""
    fitted = TablePreprocessor()
    out = fitted.fit_transform(pd.DataFrame(columns))
    return fitted, pd.DataFrame(out, columns=fitted.get_feature_names_out())


def test_numbers_come_out_as_they_are_and_missing_ones_as_the_median_with_a_column_that_says_so():
    values = numbers()
    values[[3, 4, 5]] = np.nan
    fitted, out = fit(a=values, b=numbers(1))
    np.testing.assert_array_equal(out["b"], numbers(1))
    np.testing.assert_array_equal(out["a is missing"], np.isnan(values))
    known = np.sort(values[~np.isnan(values)])
    assert (out["a"][[3, 4, 5]] == known[(len(known) - 1) // 2]).all()
    again = fitted.transform(pd.DataFrame({"a": [np.nan], "b": [2.0]}))
    np.testing.assert_array_equal(again, [[out["a"][3], 1.0, 2.0]])


def test_few_missing_cells_bring_no_column_of_their_own():
    values = numbers()
    values[3] = np.nan
    for share, names in ((0.02, ["a", "a is missing"]), (0.03, ["a"]), (1, ["a"])):
        fitted = TablePreprocessor(indicator_share=share).fit(pd.DataFrame({"a": values}))
        assert list(fitted.get_feature_names_out()) == names


@pytest.mark.parametrize(
    "values",
    [
        [str(v) for v in numbers()],
        [Decimal(repr(float(v))) for v in numbers()],
        pd.array(numbers(), dtype="Float64"),
        numbers().astype(object),
    ],
    ids=["text", "Decimal", "nullable", "object"],
)
def test_numbers_written_otherwise_are_the_same_numbers(values):
    fitted, out = fit(a=values)
    assert fitted.kinds_ == {"a": "number"}
    np.testing.assert_allclose(out["a"], numbers(), rtol=1e-15)


def test_booleans_are_zero_and_one():
    _, out = fit(a=numbers() > 0, b=pd.array(numbers(1) > 0, dtype="boolean"))
    np.testing.assert_array_equal(out["a"], numbers() > 0)
    np.testing.assert_array_equal(out["b"], numbers(1) > 0)


@pytest.mark.parametrize("form", ["int", "object", "text"])
@pytest.mark.parametrize("start", [2**62, -(2**62), 2**63 + 5])
def test_whole_numbers_beyond_float64_keep_their_differences(start, form):
    steps = np.random.default_rng(0).integers(0, 9, N)
    dtype = np.uint64 if start > 2**63 else np.int64
    values = np.array([start + int(step) for step in steps], dtype=dtype)
    written = {"int": values, "object": values.astype(object), "text": values.astype(str)}
    fitted, out = fit(a=written[form])
    np.testing.assert_array_equal(out["a"] - out["a"].min(), steps - steps.min())
    np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"a": values})), out)
    one_more = fitted.transform(pd.DataFrame({"a": values[:5] + dtype(1)}))
    np.testing.assert_array_equal(one_more[:, 0], out["a"][:5] + 1)


def test_categories_become_codes_in_sorted_order_rare_ones_together_and_unseen_ones_with_them():
    levels = ["b"] * 15 + ["a"] * 15 + ["c"] * 6 + ["x", "y", None, None]
    fitted, out = fit(a=levels)
    assert list(out) == ["a"]
    codes = dict(zip(levels, out["a"], strict=True))
    assert codes == {"a": 0, "b": 1, "c": 2, "x": 3, "y": 3, None: 4}
    new = pd.DataFrame({"a": ["a", "never seen", None]}, dtype=object)
    np.testing.assert_array_equal(fitted.transform(new)[:, 0], [0, 3, 4])


def test_up_to_one_hot_levels_make_a_column_each():
    table = pd.DataFrame({"a": np.repeat(["red", "green", "blue", "blue"], 10)})
    fitted = TablePreprocessor(one_hot_levels=3)
    out = fitted.fit_transform(table)
    assert list(fitted.get_feature_names_out()) == ["a = blue", "a = green", "a = red"]
    np.testing.assert_array_equal(out.sum(axis=1), 1)
    np.testing.assert_array_equal(out[:, 2], table["a"] == "red")
    np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"a": ["pink"]})), [[0, 0, 0]])


def test_columns_that_come_out_have_different_names():
    """One column may be named as another's level."""
    table = pd.DataFrame({"a": np.resize(["x", "y", "z"], N), "a = x": numbers()})
    fitted = TablePreprocessor().set_output(transform="pandas")
    out = fitted.fit_transform(table)
    assert list(out) == ["a = x", "a = y", "a = z", "a = x (2)"]
    np.testing.assert_array_equal(out["a = x (2)"], table["a = x"])


def test_ordered_categoricals_keep_their_order():
    grades = ["low", "middle", "high", "top"]
    values = pd.Categorical(grades * 10, categories=grades, ordered=True)
    _, out = fit(a=values)
    np.testing.assert_array_equal(out["a"], values.codes)


def test_codes_named_as_categorical_are_categories_whole_floats_like_whole_numbers():
    codes = np.random.default_rng(0).choice([7, 3, 11], N)
    for feature in (0, "a"):
        fitted = TablePreprocessor(categorical_features=[feature], one_hot_levels=5)
        out = fitted.fit_transform(pd.DataFrame({"a": codes, "b": numbers()}))
        assert fitted.kinds_["a"] == "category"
        assert list(fitted.get_feature_names_out()[:3]) == ["a = 3", "a = 7", "a = 11"]
        floats = fitted.transform(pd.DataFrame({"a": codes.astype(float), "b": numbers()}))
        np.testing.assert_array_equal(floats, out)
    for feature in (2, -1, "c"):
        with pytest.raises(ValueError, match="categorical_features"):
            TablePreprocessor([feature]).fit(pd.DataFrame({"a": codes, "b": numbers()}))


@pytest.mark.parametrize("form", ["datetime", "zone", "text", "date", "slashes"])
def test_dates_become_days_weekday_and_month(form):
    days = pd.Series(pd.date_range("2021-03-01", periods=N, freq="31D"))
    written = {
        "datetime": days,
        "zone": days.dt.tz_localize("UTC"),
        "text": days.dt.strftime("%Y-%m-%d"),
        "date": pd.Series([day.date() for day in days], dtype=object),
        "slashes": days.dt.strftime("%Y/%m/%d"),
    }
    fitted, out = fit(d=written[form])
    assert fitted.kinds_ == {"d": "date"}
    np.testing.assert_array_equal(np.diff(out["d"]), 31)
    np.testing.assert_array_equal(out["d weekday"], days.dt.day_of_week)
    np.testing.assert_array_equal(out["d month"], days.dt.month)


def test_the_hour_counts_where_there_is_one():
    _, out = fit(d=pd.date_range("2021-03-01", periods=N, freq="7h"))
    np.testing.assert_array_equal(out["d hour"], np.arange(N) * 7 % 24)


@pytest.mark.parametrize("form", ["objects", "polars"])
def test_times_of_day_are_seconds_and_a_missing_one_the_median(form):
    times = [datetime.time(hour % 24, 30) for hour in range(N)]
    table = pd.DataFrame({"t": times})
    if form == "polars":
        table = pytest.importorskip("polars").DataFrame({"t": times})
    fitted = TablePreprocessor()
    out = fitted.fit_transform(table)
    assert fitted.kinds_ == {"t": "number"}
    np.testing.assert_array_equal(out[:, 0], np.arange(N) % 24 * 3600 + 1800)
    median = np.sort(out[:, 0])[(N - 1) // 2]
    assert fitted.transform(pd.DataFrame({"t": [None]}))[0, 0] == median


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


def test_numbers_among_categories_stand_by_their_value():
    months = np.arange(N) % 12 + 1
    for column in (pd.Series(months).astype("category"), pd.Series(months, dtype=object)):
        column = column.astype(object).where(np.arange(N) > 2, "none yet")
        _, out = fit(a=column)
        np.testing.assert_array_equal(out["a"][3:], months[3:] - 1)
        assert (out["a"][:3] == 12).all()  # words after them


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
    with pytest.warns(UserWarning, match=r"left out: who \(no level of enough rows\); give num"):
        kept = TablePreprocessor(drop_identifiers=False).fit(pd.DataFrame(columns))
    assert list(kept.get_feature_names_out()) == ["a", "index"]


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        ("{}%", False),
        ("${}.00", False),
        ("1.{:03},50", False),
        ("{:02}.12.2020", False),
        ("1/{}/20", False),
        ("{},5", False),
        ("{} of 20", True),
        ("{}.2.3", True),
        ("10.0.0.{}", True),
        ("98-76-54{:02}", True),
        ("47.19.{}", True),
        ("A{}", True),
        ("{}-30", True),
    ],
)
def test_numbers_and_dates_in_another_spelling_are_categories_with_a_warning(cells, known):
    few = [cells.format(1 + i % 5) for i in range(N)]
    many = [cells.format(1 + i % 28) for i in range(N)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted, _ = fit(few=few, many=many, a=numbers())
    told = [str(warning.message) for warning in told]
    assert fitted.kinds_["few"] == "category"
    if known:
        assert fitted.kinds_["many"] == "text that names rows"
        assert len(told) == 1
    else:
        assert fitted.kinds_["many"].startswith("text that looks like numbers or dates")
        assert told[1].startswith(f"taken for categories: few (such as {few[0]!r}); to have")


def test_thousands_among_plain_numbers_are_another_spelling():
    with pytest.warns(UserWarning, match=r"taken for categories: few \(such as '1,200'\)"):
        fitted, _ = fit(few=np.resize(["120", "450", "800", "1,200", "2,500"], N))
    assert fitted.kinds_ == {"few": "category"}


def test_text_among_a_few_numbers_is_no_other_spelling(recwarn):
    fitted, _ = fit(few=["n/d" if i % 10 == 0 else str(i % 10) for i in range(N)])
    assert fitted.kinds_ == {"few": "category"}
    assert not recwarn


@pytest.mark.parametrize("kind", [datetime.timedelta, pd.Timedelta, np.timedelta64])
def test_durations_are_seconds_whatever_holds_them(kind):
    hours = np.random.default_rng(0).integers(0, 300, N)
    made = [datetime.timedelta(hours=int(hour)) for hour in hours]
    if kind is not datetime.timedelta:
        made = [kind(duration) for duration in made]
    cells = pd.Series(made, dtype=object)
    cells[3] = None
    fitted, _ = fit(waited=cells)
    assert fitted.kinds_ == {"waited": "number"}
    as_dtype = pd.DataFrame({"waited": pd.to_timedelta(hours, unit="h")})
    np.testing.assert_array_equal(fitted.transform(as_dtype)[:, 0], hours * 3600.0)


@pytest.mark.parametrize("form", [int, float, str, "padded", "Int64"])
def test_row_numbers_are_left_out_in_whatever_form_they_come(form):
    numbers_of_rows = pd.Series(np.random.default_rng(0).permutation(N) + 1)
    written = (
        numbers_of_rows.map("{:05d}".format) if form == "padded" else numbers_of_rows.astype(form)
    )
    with pytest.warns(UserWarning, match=r"index \(row number\)"):
        fit(index=written, a=numbers())
    fitted, _ = fit(gaps=numbers_of_rows * 2, a=numbers(), halves=numbers_of_rows / 2)
    assert not fitted.dropped_.keys() - {"halves"}  # the gaps' copy, in other units


def test_categorical_features_may_be_a_mask():
    table = pd.DataFrame({"a": np.arange(N) % 4, "b": np.arange(N) % 5})
    fitted = TablePreprocessor(categorical_features=[False, True]).fit(table)
    assert fitted.kinds_ == {"a": "number", "b": "category"}
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


def test_text_among_many_numbers_is_refused_with_its_place_and_marks_of_nothing_are_not():
    values = numbers().astype(object)
    values[7] = "?"
    fit(a=values)
    values[9] = "1,5"
    with pytest.raises(ValueError, match="column a: row 9 holds '1,5', not a number"):
        fit(a=values)


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


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize(("scale", "offset"), [(1e-250, 0), (1e250, 0), (-3, 1e6)])
def test_scalings_undo_units_and_origin(kind, scale, offset):
    scale = abs(scale) if kind in ROTATED else scale  # of which a mirrored table is another
    x = np.column_stack([numbers(), numbers(1)])
    new = np.column_stack([numbers(2), numbers(3)])
    moved = [a * [scale, 1] + [offset, 0] for a in (x, new)]
    plain, other = fit_scaling(x, kind), fit_scaling(moved[0], kind)
    sign = np.array([np.sign(scale), 1])
    for a, b in ((x, moved[0]), (new, moved[1])):
        expected, found = plain(a) * sign, other(b)
        if kind in TURNED:  # whose axes have no sign of their own
            expected, found = np.abs(expected), np.abs(found)
        np.testing.assert_allclose(expected, found, atol=1e-5)
    assert np.abs(plain(x)).max() < 5


def test_the_quantile_scaling_undoes_every_increasing_change_of_fitted_values():
    x = numbers()[:, None]
    np.testing.assert_allclose(
        fit_scaling(x, "quantile")(x),
        fit_scaling(np.exp(5 * x), "quantile")(np.exp(5 * x)),
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", SCALINGS)
def test_scalings_stay_finite_for_any_row_and_survive_json(kind):
    x = np.column_stack([numbers() * 1e300, np.zeros(N), numbers() ** 9])
    scaling = fit_scaling(x, kind)
    wild = np.array([[1.7e308, 5e-324, -1.7e308], [-1.7e308, 1e308, 0]])
    assert np.isfinite(scaling(np.concatenate([x, wild]))).all()
    again = scaling_from_state(json.loads(json.dumps(scaling.state(), default=np.ndarray.tolist)))
    np.testing.assert_array_equal(again(wild), scaling(wild))


def test_a_level_is_the_same_whether_its_batch_is_read_as_text_or_not():
    texts = {"grade": ["1.0", "2.0", "3.0", "A"] * 10, "flag": ["TRUE", "FALSE", "maybe", "n"] * 10}
    fitted = TablePreprocessor()
    out = fitted.fit_transform(pd.DataFrame(texts))
    batch = pd.DataFrame({"grade": [1.0, 2.0, 3.0], "flag": [True, False, True]})
    again = fitted.transform(batch)
    expected = fitted.transform(
        pd.DataFrame({"grade": ["1.0", "2.0", "3.0"], "flag": ["TRUE", "FALSE", "TRUE"]})
    )
    np.testing.assert_array_equal(again, expected)
    np.testing.assert_array_equal(again[:2], out[:2])
    # A leading zero makes another code.
    codes = TablePreprocessor(categorical_features=[0])
    codes.fit(pd.DataFrame({"code": ["007", "7"] * 20}))
    assert (np.diff(codes.transform(pd.DataFrame({"code": ["007", "7"]})), axis=0) != 0).all()


@pytest.mark.parametrize("mark", ["NA", "n/a", "None", "#N/A", "<NA>", "NULL", "?"])
def test_what_files_write_for_nothing_is_missing(mark):
    known = [f"{value:.3f}" for value in numbers()]
    written = [mark if row % 4 == 0 else text for row, text in enumerate(known)]
    fitted, out = fit(a=written, b=numbers(1))
    assert fitted.kinds_["a"] == "number"
    np.testing.assert_array_equal(out["a is missing"], np.arange(N) % 4 == 0)


def test_an_unknown_level_lies_in_the_middle_and_is_named():
    two = TablePreprocessor().fit(pd.DataFrame({"a": numbers(), "g": ["w", "x"] * (N // 2)}))
    new = pd.DataFrame({"a": [0.0] * 4, "g": ["w", "x", "banana", None]})
    with pytest.warns(UserWarning, match="column g holds 'banana', which the fit has not seen"):
        out = two.transform(new)
    np.testing.assert_array_equal(out[:, 1], [0, 1, 0.5, 0.5])
    three = TablePreprocessor().fit(pd.DataFrame({"a": numbers(), "g": [*"xyzx"] * (N // 4)}))
    with pytest.warns(UserWarning, match="'1', '2', '3', '4', '5' and 1 more, which the fit"):
        out = three.transform(pd.DataFrame({"a": [0.0] * 6, "g": [*"123456"]}))
    np.testing.assert_array_equal(out[:, 1:], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        three.transform(pd.DataFrame({"a": [0.0] * 2, "g": ["x", None]}))


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


def test_periods_are_dates():
    months = pd.period_range("2020-01", periods=N, freq="M")
    by_period, by_date = (
        TablePreprocessor().fit(pd.DataFrame({"m": each}))
        for each in (months, months.to_timestamp())
    )
    assert by_period.kinds_ == {"m": "date"}
    later = pd.DataFrame({"m": pd.period_range("2025-01", periods=3, freq="M")})
    np.testing.assert_array_equal(
        by_period.transform(later), by_date.transform(later.assign(m=later.m.dt.to_timestamp()))
    )


@pytest.mark.parametrize("fitting", [True, False])
def test_a_whole_number_beyond_floats_is_refused_with_its_column(fitting):
    x = pd.DataFrame({"a": numbers(), "b": numbers(1)}).astype(object)
    fitted = TablePreprocessor().fit(x)
    x.loc[3, "b"] = 10**400
    with pytest.raises(ValueError, match="column b: "):
        (fitted.fit if fitting else fitted.transform)(x)


@pytest.mark.parametrize("slip", ["unknown", "2020-13-01", "31.12.2020", "20200105", 20200105])
def test_a_slip_in_a_column_of_dates_is_named(slip):
    dates = [str(day.date()) for day in pd.date_range("2020-01-01", periods=N)]
    dates[7] = slip
    with pytest.raises(ValueError, match=f"column d: row 7 holds {slip!r}, not a date, as nearly"):
        fit(a=numbers(), d=pd.Series(dates, dtype=object))
    few = pd.Series(["2020-01-01", "2020-02-01", "unknown"] * N)[:N]
    assert fit(a=numbers(), d=few)[0].kinds_["d"] == "category"


def test_a_categorical_stays_one_whatever_its_levels_look_like():
    days = pd.date_range("2020-01-01", periods=4).astype(str)[::-1]
    values = pd.Categorical(np.resize(days, N), categories=days, ordered=True)
    fitted, out = fit(d=values)
    assert fitted.kinds_ == {"d": "category"}
    assert out.iloc[:4, 0].tolist() == [0, 1, 2, 3]


def test_a_row_number_with_a_missing_cell_is_one():
    rows = np.arange(N, dtype=float)
    rows[[3, N - 1]] = np.nan
    with pytest.warns(UserWarning, match="left out: id \\(row number\\)"):
        fitted, _ = fit(id=rows, a=numbers())
    assert fitted.kinds_["id"] == "row number"
    rows[: N // 5] = np.nan  # too many to tell
    assert fit(id=rows, a=numbers())[0].kinds_["id"] == "number"


def test_levels_that_read_as_fractions_have_one_name_in_every_batch():
    cells = pd.Series(["0.10", "0.25", "0.50", "unk"] * 10, dtype=object)
    fitted, out = fit(dose=cells)
    batch = pd.DataFrame({"dose": [0.1, 0.25, 0.5]})
    np.testing.assert_array_equal(fitted.transform(batch)[:, 0], out["dose"][:3])
    older = fitted.state()
    older["encoders"]["0"]["levels"] = ["0.10", "0.25", "0.50", "unk"]
    loaded = TablePreprocessor.from_state(json.loads(json.dumps(older)))
    np.testing.assert_array_equal(loaded.transform(batch)[:, 0], out["dose"][:3])


def test_one_long_cell_does_not_widen_all_others():
    cells = pd.Series([f"note {row}" for row in range(4000)], dtype=object)
    cells[5] = "x" * 30_000
    tracemalloc.start()
    with pytest.warns(UserWarning, match="text that names rows"):
        TablePreprocessor().fit(pd.DataFrame({"a": np.arange(4000) % 7, "t": cells}))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # 480 MB where every cell is as wide


def test_polars_whole_numbers_of_128_bits_keep_their_differences():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": pl.Series([2**70 + row**2 for row in range(N)], dtype=pl.Int128)})
    out = TablePreprocessor().fit_transform(table)[:, 0]
    np.testing.assert_array_equal(np.diff(out), 2 * np.arange(N - 1) + 1)
