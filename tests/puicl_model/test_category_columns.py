import json
import time
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor
from puicl_model.preprocessing.cells import word


@pytest.mark.filterwarnings("error")  # where levels were rare, one more is nothing new
def test_categories_become_codes_in_sorted_order_rare_ones_together_and_unseen_ones_with_them():
    levels = ["b"] * 15 + ["a"] * 17 + ["c"] * 3 + ["x", "y", "y", None, None]
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
    table = pd.DataFrame({"a": ["x"] * 9 + ["z"] + ["y"] * 9 + [None] * 4}, dtype=object)
    fitted = TablePreprocessor(one_hot_levels=4).set_output(transform="pandas")
    out, a = fitted.fit_transform(table), table["a"]
    expected = {"x": a == "x", "y": a == "y", "(rare)": a == "z", "(missing)": a.isna()}
    assert list(out) == [f"a = {level}" for level in expected]
    np.testing.assert_array_equal(out, pd.DataFrame(expected))


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


def test_numbers_among_categories_stand_by_their_value():
    months = np.arange(N) % 12 + 1
    for column in (pd.Series(months).astype("category"), pd.Series(months, dtype=object)):
        column = column.astype(object).where(np.arange(N) > 2, "none yet")
        _, out = fit(a=column)
        np.testing.assert_array_equal(out["a"][3:], months[3:] - 1)
        assert (out["a"][:3] == 12).all()  # words after them


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
    assert word(1e22) == word(10**22) == "1" + "0" * 22  # of however many digits
    # A leading zero makes another code.
    codes = TablePreprocessor(categorical_features=[0])
    codes.fit(pd.DataFrame({"code": ["007", "7"] * 20}))
    assert (np.diff(codes.transform(pd.DataFrame({"code": ["007", "7"]})), axis=0) != 0).all()


def test_a_code_with_zeros_in_front_is_found_where_a_batch_has_it_as_a_number():
    """A file's rows without V57 have 38, not 038, and were taken for a rare code without a word."""
    cells = np.resize(["038", "039", "250", "401", "V57"], N).astype(object)
    cells[0] = "V58"  # rare
    fitted = TablePreprocessor().fit(pd.DataFrame({"code": cells}))
    fitted = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    new = {"text": ["038", "250", "039"], "whole": [38, 250, 39], "float": [38.0, 250.0, 39.0]}
    text, whole, floats = (fitted.transform(pd.DataFrame({"code": new[form]})) for form in new)
    np.testing.assert_array_equal(whole, text)
    np.testing.assert_array_equal(floats, text)
    # Parts of one table, of which one has no other text; and 7 beside 007 stays another code.
    parts = np.array([*cells[5:20], *[38, 39, 250, 401, "V57"] * 3], dtype=object)
    out = TablePreprocessor().fit_transform(pd.DataFrame({"code": parts}))
    np.testing.assert_array_equal(out[:15], out[15:])
    both = pd.DataFrame({"code": np.array(["007", "7", "x", 7] * 9, dtype=object)})
    out = TablePreprocessor(one_hot_levels=1).fit_transform(both)
    assert out[0] != out[1] == out[3]


def test_a_number_stands_for_a_code_with_zeros_on_both_sides_unless_two_read_like_it():
    codes = ["038.10", "039", "039.0", "250.01", "V57"]
    table = pd.DataFrame({"code": np.resize(codes, N), "b": numbers()})
    fitted = TablePreprocessor().fit(table)
    text = fitted.transform(table[:5])[[0, 3], 0]
    found = fitted.transform(pd.DataFrame({"code": [38.1, 250.01], "b": [0.0, 1.0]}))[:, 0]
    np.testing.assert_array_equal(found, text)
    with pytest.warns(UserWarning, match="column code holds '39', which the fit has not seen"):
        fitted.transform(pd.DataFrame({"code": [39.0, 250.01], "b": [0.0, 1.0]}))


def test_an_unknown_level_lies_in_the_middle_and_is_named():
    two = TablePreprocessor().fit(pd.DataFrame({"a": numbers(), "g": ["w", "x"] * (N // 2)}))
    new = pd.DataFrame({"a": [0.0] * 4, "g": ["w", "x", "banana", None]})
    with pytest.warns(UserWarning, match="column g holds 'banana', which the fit has not seen"):
        out = two.transform(new)
    np.testing.assert_array_equal(out[:, 1], [0, 1, 0.5, 0.5])
    one = TablePreprocessor().fit(pd.DataFrame({"a": numbers(), "g": ["w", None] * (N // 2)}))
    with pytest.warns(UserWarning, match="column g holds 'banana', 'x', which the fit has not"):
        np.testing.assert_array_equal(one.transform(new)[:, 1], [0, 0.5, 0.5, 1])
    three = TablePreprocessor().fit(pd.DataFrame({"a": numbers(), "g": [*"xyzx"] * (N // 4)}))
    with pytest.warns(UserWarning, match="'1', '2', '3', '4', '5' and 1 more, which the fit"):
        out = three.transform(pd.DataFrame({"a": [0.0] * 6, "g": [*"123456"]}))
    np.testing.assert_array_equal(out[:, 1:], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        three.transform(pd.DataFrame({"a": [0.0] * 2, "g": ["x", None]}))


def test_a_categorical_stays_one_whatever_its_levels_look_like():
    days = pd.date_range("2020-01-01", periods=4).astype(str)[::-1]
    values = pd.Categorical(np.resize(days, N), categories=days, ordered=True)
    fitted, out = fit(d=values)
    assert fitted.kinds_ == {"d": "category"}
    assert out.iloc[:4, 0].tolist() == [0, 1, 2, 3]


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


@pytest.mark.parametrize("ordered", [False, True])
def test_what_files_write_for_nothing_is_missing_in_a_categorical_too(ordered):
    words = pd.Series(np.resize(["sales", "?", "clerk", " NA "], N), dtype=object)
    levels = pd.Categorical(words, ["?", "clerk", "sales", " NA "], ordered=ordered)
    by_words, out = fit(job=words)
    by_levels, same = fit(job=levels)
    assert list(by_words.get_feature_names_out()) == list(by_levels.get_feature_names_out())
    np.testing.assert_array_equal(out, same)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for fitted in (by_words, by_levels):
            np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"job": words})), out)
            np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"job": levels})), out)


@pytest.mark.parametrize("ordered", [False, True])
def test_what_cannot_be_seen_around_a_level_of_a_categorical_is_ignored_as_in_text(ordered):
    order = ["high\u200b", "low", "\ufeffhigh", "\u200bNA"]
    words = pd.Series(np.resize(order, N), dtype=object)
    by_words, out = fit(grade=words)
    by_levels, _ = fit(grade=pd.Categorical(words, order, ordered=ordered))
    assert set(by_words.levels_["grade"]) == {"high", "low"}
    assert by_levels.levels_["grade"] == (["high", "low"] if ordered else by_words.levels_["grade"])
    if not ordered:
        same = by_levels.transform(pd.DataFrame({"grade": pd.Categorical(words)}))
        np.testing.assert_array_equal(same, out)


def test_levels_that_older_versions_saved_with_invisible_characters_are_found_again():
    cells = pd.Categorical(np.resize(["high\u200b", "low", "\ufeffmiddle"], N))
    fitted, out = fit(grade=cells)
    older = fitted.state()
    assert older["encoders"]["0"]["levels"] == ["low", "middle", "high"]
    older["encoders"]["0"]["levels"] = ["low", "\ufeffmiddle", "high\u200b"]
    loaded = TablePreprocessor.from_state(json.loads(json.dumps(older)))
    np.testing.assert_array_equal(loaded.transform(pd.DataFrame({"grade": cells})), out)


@pytest.mark.parametrize("container", ["arrow table", "arrow columns", "polars"])
def test_a_categorical_is_one_in_every_container(container):
    grades = ["low", "middle", "high"]
    cells = np.resize(grades, N).astype(object)
    cells[5] = None
    table = pd.DataFrame(
        {
            "grade": pd.Categorical(cells, grades, ordered=True),
            "code": pd.Categorical(np.resize(["3", "1", "2"], N)),
        }
    )
    if container == "polars":
        polars = pytest.importorskip("polars")
        other = polars.DataFrame(
            {
                "grade": polars.Series(cells.tolist(), dtype=polars.Enum(grades)),
                "code": polars.Series(table["code"].tolist(), dtype=polars.Categorical),
            }
        )
    else:
        pyarrow = pytest.importorskip("pyarrow")
        other = pyarrow.Table.from_pandas(table)
        if container == "arrow columns":
            other = other.to_pandas(types_mapper=pd.ArrowDtype)
            assert isinstance(other["grade"].dtype, pd.ArrowDtype)
    expected, found = TablePreprocessor(), TablePreprocessor()
    np.testing.assert_array_equal(found.fit_transform(other), expected.fit_transform(table))
    assert found.kinds_ == expected.kinds_ == {"grade": "category", "code": "category"}
    np.testing.assert_array_equal(found.transform(table), expected.transform(table))


@pytest.mark.parametrize("container", ["table", "columns"])
def test_text_in_arrows_views_is_text(container):
    """As `pyarrow.table(frame)` makes it of a polars frame; pandas has no kernels for it."""
    pyarrow = pytest.importorskip("pyarrow")
    if not hasattr(pyarrow, "string_view"):
        pytest.skip("this pyarrow has no views")
    table = pd.DataFrame({"a": np.resize(["x", "y", "z", None], N), "b": numbers()})
    views = pyarrow.array(table["a"].tolist(), pyarrow.string_view(), from_pandas=True)
    if container == "table":
        other = pyarrow.table({"a": views, "b": table["b"]})
    else:
        column = pd.arrays.ArrowExtensionArray(pyarrow.chunked_array([views]))
        other = table.assign(a=pd.Series(column))
    expected, found = TablePreprocessor(), TablePreprocessor()
    np.testing.assert_array_equal(found.fit_transform(other), expected.fit_transform(table))
    assert found.kinds_ == expected.kinds_ == {"a": "category", "b": "number"}


def test_of_two_levels_none_is_rare():
    fitted, out = fit(a=["no"] * (N - 1) + ["yes"], b=numbers())
    np.testing.assert_array_equal(out["a"], np.arange(N) == N - 1)
    new = pd.DataFrame({"a": ["yes", "no", None], "b": [0.0] * 3}, dtype=object)
    np.testing.assert_array_equal(fitted.transform(new)[:, 0], [1, 0, 0.5])


def test_an_unknown_level_among_codes_is_the_median_code():
    fitted, _ = fit(a=["d"] * 15 + ["a"] * 5 + ["b"] * 5 + ["c"] * 5 + ["d"] * 10)
    with pytest.warns(UserWarning, match="holds 'new'"):
        assert fitted.transform(pd.DataFrame({"a": ["new"]}))[0, 0] == 3


@pytest.mark.parametrize(
    "long", ["0" * 20_000 + "x", "<" + " " * 1_000 + "x"], ids=["zeros", "blanks"]
)
def test_a_long_cell_is_read_once_not_as_often_as_it_could_be_shared_out(long):
    began = time.process_time()
    fit(a=np.resize(["low", "middle", "high", long], N), b=numbers())
    assert time.process_time() - began < 2  # some hundredths, where it was five seconds and more


def test_long_cells_that_begin_alike_are_compared_once_not_for_each_of_their_words():
    began = time.process_time()
    fit(a=np.resize(["1 day, " * 20_000 + end for end in "abcde"], N), b=numbers())
    assert time.process_time() - began < 5  # half a second, where it was half a minute


@pytest.mark.parametrize(
    "mark", ["\u00a0", "\u200b", "\ufeff", "\u200e", "\u00ad", "\u3000 \u200b", "\x1a", "\x00"]
)
def test_what_shows_nowhere_around_a_cell_is_no_part_of_it(recwarn, mark):
    cells = np.resize(["red", "green", "blue", "?"], N)
    plain = {"level": cells, "number": numbers().astype(str), "few": np.resize(["1", "2"], N)}
    plain["date"] = [f"2024-05-{1 + row % 28:02}" for row in range(N)]
    plain["time"] = [f"{row % 24}:15" for row in range(N)]
    marked = {
        name: [f"{mark}{cell}{mark}" if row % 2 else cell for row, cell in enumerate(column)]
        for name, column in plain.items()
    }
    fitted, out = fit(**marked)
    expected, there = fit(**plain)
    pd.testing.assert_frame_equal(out, there)
    assert fitted.kinds_ == expected.kinds_
    np.testing.assert_array_equal(expected.transform(pd.DataFrame(marked)), out)
    assert not recwarn
