import datetime
import json
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor


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


@pytest.mark.parametrize("dtype", [object, "string"])
def test_booleans_may_be_words_in_new_rows(dtype):
    fitted, _ = fit(a=numbers() > 0, b=numbers(1), c=np.where(numbers(2) > 0, True, None))
    again = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    words = pd.Series(["True", "False", "TRUE", "?", " false "], dtype=dtype)
    truths = [True, False, True, None, False]
    new = pd.DataFrame({"a": words, "b": numbers(1)[:5], "c": words})
    plain = pd.DataFrame({"a": truths, "b": numbers(1)[:5], "c": truths})
    for each in (fitted, again):
        np.testing.assert_array_equal(each.transform(new), fitted.transform(plain))
    with pytest.raises(ValueError, match="column a: row 0 holds 'yes', not a number"):
        fitted.transform(new.assign(a="yes"))
    with pytest.raises(ValueError, match="column b: row 0 holds 'True', not a number"):
        fitted.transform(new.assign(b=words))


def test_booleans_are_zero_and_one():
    _, out = fit(a=numbers() > 0, b=pd.array(numbers(1) > 0, dtype="boolean"))
    np.testing.assert_array_equal(out["a"], numbers() > 0)
    np.testing.assert_array_equal(out["b"], numbers(1) > 0)


@pytest.mark.parametrize("form", ["int", "object", "text", "decimal"])
@pytest.mark.parametrize("start", [2**62, -(2**62), 2**63 + 5])
def test_whole_numbers_beyond_float64_keep_their_differences(start, form):
    steps = np.random.default_rng(0).integers(0, 9, N)
    dtype = np.uint64 if start > 2**63 else np.int64
    values = np.array([start + int(step) for step in steps], dtype=dtype)
    written = {"int": values, "object": values.astype(object), "text": values.astype(str)}
    written["decimal"] = [Decimal(int(value)) for value in values]
    fitted, out = fit(a=written[form])
    np.testing.assert_array_equal(out["a"] - out["a"].min(), steps - steps.min())
    np.testing.assert_array_equal(fitted.transform(pd.DataFrame({"a": values})), out)
    one_more = fitted.transform(pd.DataFrame({"a": values[:5] + dtype(1)}))
    np.testing.assert_array_equal(one_more[:, 0], out["a"][:5] + 1)


@pytest.mark.parametrize(
    ("cells", "known"),
    [
        ("1/{}/20", False),
        ("1/{}/20 18:57", False),
        ("{:02}-sept-20", False),
        ("Dec-{:02}", False),
        ("{}-", False),
        ("{} DR", False),
        ("$({})", False),
        ("1.5 x 10^{}", False),
        ("2Q{:02}", False),
        ("Week {}, 2020", False),
        ("W{:02} 2020", False),
        ("{} of 20", True),
        ("Q1-{}", True),
        ("H1{:02}", True),
        ("1q{:02}", True),
        ("W{:02}", True),
        ("{}/20", True),
        ("{}/64", True),
        ("{}/2", True),
        ("{} of 20 18:57", True),
        ("{}.2.3", True),
        ("2{0}.2{0}.2020", True),  # no month has such a number
        ("10.0.0.{}", True),
        ("98-76-54{:02}", True),
        ("47.19.{}", True),
        ("A{}", True),
        ("{}-30", True),
        ("20{:02}-42", True),
        ("{}N", True),
        ("Dec{:02}", True),
        ("{} Deck 2020", True),
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
        assert told[1].startswith(f"taken for categories: few (such as {few[0]!r}); if these")


@pytest.mark.parametrize(("n_words", "told"), [(1, 1), (2, 0)])
def test_nine_in_ten_levels_in_another_spelling_are_told(recwarn, n_words, told):
    levels = [f"{k},5" for k in range(10 - n_words)] + ["none", "some"][:n_words]
    fitted, _ = fit(few=np.resize(levels, N))
    assert fitted.kinds_ == {"few": "category"}
    assert len(recwarn) == told


def test_text_among_a_few_numbers_is_no_other_spelling(recwarn):
    fitted, _ = fit(few=["n/d" if i % 10 == 0 else str(i % 10) for i in range(N)])
    assert fitted.kinds_ == {"few": "category"}
    assert not recwarn


@pytest.mark.parametrize("fitting", [True, False])
def test_a_whole_number_beyond_floats_is_refused_with_its_column(fitting):
    x = pd.DataFrame({"a": numbers(), "b": numbers(1)}).astype(object)
    fitted = TablePreprocessor().fit(x)
    x.loc[3, "b"] = 10**400
    with pytest.raises(ValueError, match="column b: "):
        (fitted.fit if fitting else fitted.transform)(x)


def test_polars_whole_numbers_of_128_bits_keep_their_differences():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"a": pl.Series([2**70 + row**2 for row in range(N)], dtype=pl.Int128)})
    out = TablePreprocessor().fit_transform(table)[:, 0]
    np.testing.assert_array_equal(np.diff(out), 2 * np.arange(N - 1) + 1)


@pytest.mark.parametrize("units", [("kg", "lb"), ("°C", "°F"), ("mg/dl", "mmol/l")])
def test_numbers_with_two_units_are_categories_with_a_warning(units):
    text = [f"{k % 3 + 1} {units[k % 2]}" for k in range(N)]
    with pytest.warns(UserWarning, match="taken for categories: a \\(such as"):
        fit(a=text, b=numbers())


def test_numbers_with_two_units_of_one_kind_are_numbers(recwarn):
    fitted, _ = fit(a=[f"{k % 3 + 1} {('g', 'kg')[k % 2]}" for k in range(N)])
    assert fitted.kinds_ == {"a": "number"}
    assert not recwarn


@pytest.mark.parametrize(
    "levels",
    [
        "A1 A2 A3 A4",
        "1-9 2-9 3-9 4-9",
        "1A 2A 3A 4A",
        "1a 2b 3c 4d",
        "1a 2a 3a 1b 2b 3b",
        "no.1 no.2 no.3",
    ],
)
def test_codes_are_categories_without_a_warning(levels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted, _ = fit(a=np.resize(levels.split(), N), b=numbers())
    assert fitted.kinds_["a"] == "category"


def test_fractions_beside_a_huge_whole_number_keep_their_digits():
    cells = pd.Series([*(0.25 + k / 2 for k in range(N)), 2**60], dtype=object)
    _, out = fit(a=cells)
    np.testing.assert_array_equal(out["a"], cells.astype(float))


def test_no_zero_that_comes_out_has_a_sign():
    fitted, _ = fit(a=numbers(), b=numbers(1))
    out = fitted.transform(pd.DataFrame({"a": [-0.0], "b": [0.0]}))
    assert not np.signbit(out).any()


def test_a_float_in_a_column_of_huge_whole_numbers_is_moved_as_they_are():
    fitted, _ = fit(a=2**60 + np.random.default_rng(0).integers(0, 9, N))
    new = fitted.transform(pd.DataFrame({"a": [float(2**60), 2**60]}, dtype=object))
    assert np.abs(new).max() < 10  # a float is no nearer than its own steps of 256


def test_the_column_that_says_where_it_is_missing_comes_from_its_share_on():
    values = numbers()
    values[:10] = np.nan
    fitted = TablePreprocessor(indicator_share=0.25).fit(pd.DataFrame({"a": values}))
    assert list(fitted.get_feature_names_out()) == ["a", "a is missing"]


@pytest.mark.parametrize(("n_missing", "share"), [(4, 0.1), (8, 0.2)])
def test_the_column_that_says_where_it_is_missing_comes_at_its_very_share(n_missing, share):
    values = np.random.default_rng(0).normal(size=40)
    values[:n_missing] = np.nan
    fitted = TablePreprocessor(indicator_share=share).fit(pd.DataFrame({"a": values}))
    assert list(fitted.get_feature_names_out()) == ["a", "a is missing"]


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_arrows_whole_numbers_beyond_floats_keep_their_differences_beside_blanks(kind):
    pa = pytest.importorskip("pyarrow")
    values = [None if row % 5 == 0 else 2**60 + row**2 for row in range(N)]
    table = pa.table({"a": pa.array(values, kind)})
    out = TablePreprocessor().fit_transform(table)
    known = [row for row in range(N) if row % 5]
    np.testing.assert_array_equal(np.diff(out[known, 0]), np.diff([row**2 for row in known]))


def test_polars_whole_numbers_below_zero_beside_blanks_are_read():
    pl = pytest.importorskip("polars")
    values = [None if row % 5 == 0 else row - 20 for row in range(N)]
    out = TablePreprocessor().fit_transform(pl.DataFrame({"a": pl.Series(values, dtype=pl.Int64)}))
    known = [row for row in range(N) if row % 5]
    np.testing.assert_array_equal(out[known, 0], [values[row] for row in known])


@pytest.mark.parametrize("bounds", [["<0.5"], ["<0.5", "< 0.1", ">=9"], ["≤0.5", "≥ 100"]])
def test_bounds_beside_many_numbers_are_told_and_beside_few_are_bands(bounds):
    """What a laboratory measured no further; `<1, 1, 2, >2` are levels in their order."""
    rows = np.arange(400)
    for share, distinct in ((0.05, 40), (0.6, 40), (0.6, 4)):
        cells = (1 + rows % distinct / 8).astype(str).astype(object)
        cells[rows < share * len(rows)] = np.resize(bounds, int(share * len(rows)))
        table = pd.DataFrame({"lab": cells})
        if distinct == 4:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                TablePreprocessor().fit(table)
        elif share < 0.1:
            told = f"row 0 holds '{bounds[0]}', .*write bounds as numbers .0.5, or half of it.,"
            with pytest.raises(ValueError, match=told):
                TablePreprocessor().fit(table)
        else:
            with pytest.warns(UserWarning, match=r"taken for categories: lab \(such as '[<>≤≥]"):
                TablePreprocessor().fit(table)


@pytest.mark.parametrize("bound", [">1000", "≥ 1000"])
def test_half_of_a_lower_bound_is_not_proposed(bound):
    table = pd.DataFrame({"lab": [bound, *map(str, range(1, 400))]})
    with pytest.raises(ValueError, match=r"write bounds as numbers .1000., or name"):
        TablePreprocessor().fit(table)


@pytest.mark.parametrize(
    ("others", "nothing", "told"),
    [
        (numbers(), -999, True),
        (numbers(), 9999, True),
        (numbers(), -32768, True),  # of rasters
        (numbers(), -(2**31), True),
        (numbers(), "-3.4e+38", True),
        (numbers(), -3e38, False),
        (numbers(), -32767, False),
        (np.arange(N) % 20, 99, True),
        (np.arange(N) * 250, -9, True),  # no other is below 0
        (numbers() * 200, -999, False),  # as far from each other
        (np.arange(N) * 5, 99, False),
        (numbers(), 1000, False),  # may be a limit
        (np.arange(N) % 4, 99, False),  # a code like others
    ],
)
def test_nines_and_least_numbers_far_from_all_others_are_told_of_where_they_repeat(
    recwarn, others, nothing, told
):
    for n_nines, often in ((2, False), (3, True)):
        recwarn.clear()
        fit(a=np.append(others.astype(float), [float(nothing)] * n_nines))
        assert [str(warning.message) for warning in recwarn] == [
            f"far from all others and repeated: a ({nothing}); if it stands for a missing cell, "
            "empty it"
        ] * (told and often)


@pytest.mark.parametrize(("nothing", "told"), [(-9999, False), (-32768, True)])
def test_three_least_numbers_are_told_of_in_any_table_and_three_nines_in_small_ones(
    recwarn, nothing, told
):
    fit(a=np.append(np.arange(400) / 4, [nothing] * 3))
    assert len(recwarn) == told


@pytest.mark.parametrize("form", ["%Y%m%d", "%d%m%Y", "%m%d%Y"])
def test_numbers_that_are_digits_of_days_are_told_of(recwarn, form):
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(37 * k) for k in range(N)]
    written = [int(f"{day:{form}}") for day in days]
    with pytest.warns(UserWarning, match=rf"taken for numbers: a \(such as {min(written)}\); if"):
        fitted, _ = fit(a=written, b=numbers())
    assert fitted.kinds_["a"] == "number"
    recwarn.clear()
    fit(a=[*written[1:], 20201350])  # no month has such a number
    fit(a=np.add(written, 0.5), few=np.resize(written[:10], N))
    assert not recwarn


@pytest.mark.filterwarnings("error")
def test_numbers_of_any_size_may_be_far_from_each_other():
    _, out = fit(a=np.append(numbers(), [1e308, -1e308]))
    np.testing.assert_array_equal(out["a"], np.append(numbers(), [1e308, -1e308]))


def test_points_that_may_part_thousands_are_told_of(recwarn):
    """Of a file without fractions: who reads it need not think of --decimal."""
    counts = np.random.default_rng(0).integers(300, 90_000, 10 * N)
    counts[:N] %= 1000
    counts[0] = 999
    parted = [float(f"{count:,}".replace(",", ".")) for count in counts]
    with pytest.warns(UserWarning, match=r"points that may separate thousands: a \(such as .*; if"):
        fit(a=parted)
    recwarn.clear()
    measured = np.random.default_rng(1).uniform(1, 900, 10 * N)
    fit(a=measured.round(3), b=measured.round(1), c=np.where(counts < 1000, counts, counts / 8))
    fit(a=np.append(measured.round(3), np.arange(1, 50)))  # few of the whole ones are large
    fit(a=np.append(measured.round(3), np.resize([200, 1200], 50)))
    assert not recwarn
