"""Numbers with separators, currencies, percent signs and units."""

import json
import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, fit_cells, numbers

from puicl_model import PUICLClassifier, TablePreprocessor

READ = {
    "$1,234.50|$5|-$7.25": [1234.5, 5, -7.25],
    "$ 1,234|($ 50)|$0": [1234, -50, 0],
    "$5|7|$9.50": [5, 7, 9.5],
    "US$5|US$1,000": [5, 1000],
    "Rs. 500|Rs. 1,200": [500, 1200],
    "USD 1 200|USD 900|USD 15 000": [1200, 900, 15000],
    "1.234,50 €|999,00 €|12 €": [1234.5, 999, 12],
    "€1.234|€12.500|€999": [1234, 12500, 999],
    "100 €/kg|20 €/kg": [100, 20],
    "€110.5M|€600K|€0": [110.5e6, 6e5, 0],
    "19M|14k|2.5M": [19e6, 14e3, 2.5e6],
    "1.5K|900|2K": [1500, 900, 2000],
    "10%|12.5%|0": [10, 12.5, 0],
    "99.9 %|-50 %": [99.9, -50],
    "1,234|999|12,500": [1234, 999, 12500],
    "45,000|52,300|61,250": [45000, 52300, 61250],
    "1,23,456|12,34,567|999": [123456, 1234567, 999],
    "1 234|12 500|999": [1234, 12500, 999],
    "1\u00a0234,5|12\u202f500,25|7": [1234.5, 12500.25, 7],
    "1'234.50|999.00": [1234.5, 999],
    "1.234|2.345,5|7": [1234, 2345.5, 7],
    "\u22125|3|\u20132.5": [-5, 3, -2.5],
    "$(5)|$7": [-5, 7],
    "\u20b95|\u20b91,20,000": [5, 120000],
    "(5.00)|3.20|(1.25)": [-5, 3.2, -1.25],
    "500.25-|3.20|1.00": [-500.25, 3.2, 1],
    "18 kg|20 kg|7.5 kg": [18, 20, 7.5],
    "1,5 kg|2 kg|0,75 kg": [1.5, 2, 0.75],
    "500 g|1.2 kg|3 kg": [500, 1200, 3000],
    "512 MB|1 GB|1.5 GB": [512e6, 1e9, 1.5e9],
    "512 B|1 KB|2 KB": [512, 1000, 2000],
    "1D|1W|1Y": [86400, 7 * 86400, 365.25 * 86400],
    "3 m|10 d|1 y": [365.25 / 4 * 86400, 864000, 365.25 * 86400],
    "$5B|$7|$9": [5e9, 7, 9],
    "€1.234|€5.6|€999": [1.234, 5.6, 999],
    "90 min|2 h|45 min": [5400, 7200, 2700],
    "5 mg/dL|6.5 mg/dL|7 mg/dL": [5, 6.5, 7],
    "20 m²|30 m²|25 m²": [20, 30, 25],
    "20 °C|21.5 °C|-3 °C": [20, 21.5, -3],
    "1.5L|2L|0.75L": [1.5, 2, 0.75],
    "3 years old|4 years old|5 years old": [3, 4, 5],
    " 5% |7%": [5, 7],
}
# By what keeps them from being read.
UNREAD = [
    *("1,234|1234|12,500", "1.250 kg|2 kg|3.125 kg"),  # grouped by some, or decimal
    "€1.234|€1234|€12.500",
    "1,234.5|1.234,5|7",  # of two countries
    *("$5|€7|$9", "USD 5|EUR 7|USD 9", "5 kg|7 cm|9 kg"),  # of two currencies, of two kinds
    *("12.5%|10|11%", "18 kg|20|7 kg"),  # of a share, of some unit
    *(
        "555 123|555 456|555 789",
        "+49 170 123 456|+1 555 123",
        "192.168.100.200|192.168.101.100",
    ),  # telephones and addresses
    *("1,5|2,5|3,5", "1,2|1,3|1,2,3"),  # decimals, or answers of which several count
    *("10A|11A|12A", "5 K|6 K|7 K", "12AB|13AB|14AB", "10a|11a|12a", "1.1b|1.2b|2.1b"),  # flats
    *("10|12|12B|14", "12.5|12|14B|15", "2b|3|4b", "1T|2M|3B|4T", "10.5M|9M|10"),  # or billions?
    *("2.5m|10m|900", "3 t|2.5 t|700"),  # metres, or millions
    *("5S|5M|6S|6M", "10 d|3 m|20 d"),  # sizes, or seconds; months, or minutes
    *("5½|6½|7½", "10²|20²|30²", "5 May|6 May|7 May", "1 Hz|1 mHz|1 MHz"),
    *("(-5.0)|6.0|7.0", "($(5)|$6|$7", "+1 555|+49 170 123", "(5.00)|(6.25)|(7.00)"),
    "1.5AB|2AB|3AB",
    *("4th|5th|6th", "1er|2er|3er", "1\u00ba|2\u00ba|3\u00ba", "5q|7q|17q"),
    *("(5)|(6)|(7)", "(5)|6|7", "5-|4-|3", "4+|3+|2"),  # numbers of a list, grades
    *("18 kg|20 kg", "2 parents|1 parent|3 parents", "1st|2nd|3rd"),
    *("120/80|110/70|90/60", "($(5))|$6", "0,125|1,250|3,500", "007 123|1 234|5"),
    *("A1|A2|A3", "week 2|week 10|week 3", "47.19.1|47.19.2|47.19.3", "0.5|<0.1|0.7"),
    *("$|$5|$6", "%|5%|6%", "$-$5|$6|$7", "(5.0|6.0|7.0)", "-5-|5.0|6.0", "98-76-5401|98-76-5402"),
]


def fit_all(text: str) -> tuple[TablePreprocessor, pd.DataFrame]:
    """`fit_cells`, of however many cells there are."""
    cells = np.resize(np.array(text.split("|"), dtype=object), 60)
    return fit(a=cells, b=np.arange(60.0) % 7)


@pytest.mark.parametrize("text", READ)
def test_numbers_in_one_way_of_writing_are_read_without_a_word(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted, out = fit_cells(text)
    assert fitted.kinds_["a"] == "number"
    np.testing.assert_allclose(out["a"], np.resize(READ[text], 12), rtol=1e-15)
    assert list(out) == ["a", "b"]


@pytest.mark.parametrize("text", READ)
def test_a_saved_fit_reads_them_as_before(text):
    fitted, _ = fit_cells(text)
    again = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    new = pd.DataFrame({"a": text.split("|"), "b": 0.0})
    np.testing.assert_array_equal(again.transform(new)[:, 0], fitted.transform(new)[:, 0])
    np.testing.assert_allclose(again.transform(new)[:, 0], READ[text], rtol=1e-15)


@pytest.mark.parametrize("text", UNREAD)
@pytest.mark.filterwarnings("ignore")
def test_what_could_be_read_in_two_ways_or_is_no_number_is_not(text):
    fitted, _ = fit_cells(text)
    assert fitted.kinds_["a"] == "category"


def test_a_table_that_is_written_otherwise_has_the_same_bits(weights):
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(0, 5000, (60, 2)).round(2), columns=["price", "share"])
    s = (np.arange(60) < 12).astype(int)
    written = pd.DataFrame(
        {
            "price": [f"{'-' * (v < 0)}${abs(v):,.2f}" for v in x["price"]],
            "share": [f"{v:.2f} %".replace(".", ",") for v in x["share"]],
        }
    )
    plain, other = (PUICLClassifier(weights).fit(t, s) for t in (x, written))
    np.testing.assert_array_equal(plain.unlabeled_proba_, other.unlabeled_proba_)
    np.testing.assert_array_equal(plain.predict_proba(x[:3]), other.predict_proba(written[:3]))


@pytest.mark.parametrize(
    ("fitted_to", "new", "value"),
    [
        ("$1,234|$999|$15", 7, 7),
        ("$1,234|$999|$15", "1234.5", 1234.5),
        ("$1,234|$999|$15", None, 999),
        ("18 kg|20 kg|7.5 kg", "0", 0),
        ("18 kg|20 kg|7.5 kg", 0, 0),
        ("1,234|999|12,500", 1234.5, 1234.5),
        ("1.234|2.345,5|7", 7, 7),
        ("1.234|2.345,5|7", 0, 0),
        ("2 stars|3 stars|4 stars", "1 star", 1),
        ("\u20ac1.234|\u20ac5.678", "\u20ac1.5", 1.5),
        ("1,5|" + "|".join(f"{k},25" for k in range(25)), 1.5, 1.5),
        ("1,5|" + "|".join(f"{k},25" for k in range(25)), 0.125, 0.125),
    ],
)
def test_new_rows_may_be_plain_where_that_says_the_same(fitted_to, new, value):
    fitted, _ = fit_all(fitted_to)
    cells = pd.Series([new, new], dtype=object)
    assert fitted.transform(pd.DataFrame({"a": cells, "b": 0.0}))[0, 0] == value


@pytest.mark.parametrize(
    ("fitted_to", "new"),
    [
        ("$1,234|$999|$15", "€7"),
        ("$1,234|$999|$15", "7 kg"),
        ("$1,234|$999|$15", "7,5"),
        ("$1,234|$999|$15", float("inf")),
        ("$1,234|$999|$15", True),
        ("18 kg|20 kg|7.5 kg", "18 lb"),
        ("18 kg|20 kg|7.5 kg", "18"),
        ("18 kg|20 kg|7.5 kg", 18),
        ("10%|12.5%|11%", 0.1),
        ("1.234,50 €|999,00 €|12 €", 1.234),  # as a reader takes 1.234
        ("1,5|" + "|".join(f"{k},25" for k in range(25)), 1.234),
        ("€1.234|€5.678", "€999"),  # beside which €1.234 would be thousands
        ("€1.234|€5.678", 999),
        ("1.234|2.345,5|7", 1.0),  # as of 1.000
        ("2 stars|3 stars|4 stars", "2 star"),
    ],
)
def test_new_rows_in_other_units_are_refused_with_what_would_be_right(fitted_to, new):
    fitted, _ = fit_all(fitted_to)
    rows = pd.DataFrame({"a": pd.Series([fitted_to.split("|")[0], new], dtype=object), "b": 0.0})
    example = max(fitted_to.split("|"), key=len)
    sentence = (
        f"column a: row 1 holds {new!r}, not a number written like {example!r}, as at the fit"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fitted.transform(rows)


@pytest.mark.parametrize(("plain", "kind"), [(999, "number"), (1234, "category")])
@pytest.mark.filterwarnings("ignore")
def test_it_does_not_matter_whether_a_reader_made_a_number_of_a_cell(plain, kind):
    for cell in (plain, float(plain), str(plain)):
        cells = pd.Series(["1,234", "12,500", cell] * 4, dtype=object)
        assert TablePreprocessor().fit(pd.DataFrame({"a": cells})).kinds_ == {"a": kind}


def test_decimal_commas_that_nothing_else_tells_need_many_different_numbers():
    """1,2 may be the first and the second of a few answers."""
    for distinct, kind in ((20, "category"), (21, "number")):
        cells = np.resize([f"{k},5" for k in range(distinct)], 3 * distinct)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert TablePreprocessor().fit(pd.DataFrame({"a": cells})).kinds_ == {"a": kind}


@pytest.mark.parametrize(
    "cells",
    [
        [f"{a},{b}" for a in range(1, 8) for b in range(a + 1, 8)],  # two answers of seven
        [f"{a},{b}" for a in range(1, 7) for b in range(a, 7)],  # two dice
        [f"{a},{b}" for a in range(1, 4) for b in range(1, 13)],  # rows and columns: 1,1 and 1,10
        [f"192.168.100.{k}" for k in range(100, 130)],
        ["101,102", "101,103,105", "104", "104,110"],
        ["101 102", "101 103 105", "104", "104 110"],
        [f"{k},{k + 11}" for k in range(301, 330)],
        ["171 765 432", "30 123 456", "89 555 123"],  # telephones
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_lists_addresses_and_telephones_are_no_numbers(cells):
    table = pd.DataFrame({"a": np.resize(np.array(cells, dtype=object), 3 * len(cells))})
    assert TablePreprocessor().fit(table).kinds_ == {"a": "category"}


@pytest.mark.parametrize(
    "cells",
    [
        [f"{k},{k % 7}" for k in range(1, 22)],
        [f"1,{k}5" for k in range(30)],
        [f"{k / 4}".replace(".", ",") for k in range(3, 40)],  # 2,0 beside 2,25
        ["123,456", "234,345", "456,789", "567,890"],
        [f"{k},{230 - k}" for k in range(101, 130)],
        [f"{k},{900 - k}" for k in range(101, 130)],
        ["171 765", "30 123 456", "89 555 123"],
    ],
)
def test_amounts_that_are_no_lists_are_numbers(cells):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = pd.DataFrame({"a": np.resize(np.array(cells, dtype=object), 3 * len(cells))})
        assert TablePreprocessor().fit(table).kinds_ == {"a": "number"}


def test_slips_of_thousands_among_plain_numbers_are_read():
    cells = np.resize(np.array(["120", "450.5", "800", "1,200", "12,500"], dtype=object), N)
    fitted, out = fit(a=cells)
    assert fitted.kinds_ == {"a": "number"}
    np.testing.assert_array_equal(out["a"], np.resize([120, 450.5, 800, 1200, 12500], N))


def test_what_a_cell_was_read_as_can_be_asked():
    price, day = ["$1,234.50", "$5"] * 20, ["31.12.2024", "1.2.2023"] * 20
    fitted, _ = fit(price=price, day=day, plain=numbers(), group=["a", "b"] * 20)
    assert fitted.spellings_ == {
        "price": ("$1,234.50", 1234.5),
        "day": ("31.12.2024", "2024-12-31 00:00:00"),
    }


def test_numbers_that_are_named_categorical_stay_levels():
    x = pd.DataFrame({"a": np.resize(["5%", "10%", "20%", "50%"], N)})
    for fitted in (
        TablePreprocessor(categorical_features=["a"]).fit(x),
        TablePreprocessor().fit(x.astype("category")),
    ):
        assert fitted.levels_ == {"a": ["5%", "10%", "20%", "50%"]}


def test_written_row_numbers_and_identifiers_are_told_of():
    rows = [f"{row:,}" for row in range(990, 990 + N)]
    with pytest.warns(UserWarning, match=r"left out: a \(row number\)"):
        fit(a=rows, b=numbers())
    owners = [f"{997 * row:,}" for row in range(N)]
    with pytest.warns(UserWarning, match="taken for numbers: owner_id"):
        fit(owner_id=owners, b=numbers())


@pytest.mark.parametrize("words", [["Varies with device"], ["free", "on request"]])
def test_words_that_alone_keep_a_column_from_being_read_are_named(words):
    cells = np.resize(np.array([f"{k}.5M" for k in range(30)], dtype=object), 90)
    cells[: len(words)] = words
    named = re.escape(" and ".join(map(repr, words)))
    with pytest.warns(
        UserWarning, match=rf"single words: size \({named}\); empty these cells"
    ) as told:
        fitted = TablePreprocessor().fit(pd.DataFrame({"size": cells}))
    assert len(told) == len(fitted.doubts_) == 1
    assert fitted.kinds_ == {"size": "category"}


def test_words_that_alone_keep_a_column_from_being_read_are_all_that_is_said_of_it():
    cells = np.resize(np.array([f"{k} kg" for k in range(30)], dtype=object), 90)
    cells[0] = "light"
    with pytest.warns(UserWarning, match=r"because of single words: a \('light'\)") as told:
        TablePreprocessor().fit(pd.DataFrame({"a": cells}))
    assert len(told) == 1


@pytest.mark.parametrize("odd", [["one", "two", "three"], ["7 MB"]])
def test_no_words_are_named_where_more_is_amiss(odd):
    cells = np.resize(np.array([f"{k} kg" for k in range(30)], dtype=object), 90)
    cells[: len(odd)] = odd
    with pytest.warns(UserWarning, match="taken for categories: size"):
        fitted = TablePreprocessor().fit(pd.DataFrame({"size": cells}))
    assert len(fitted.doubts_) == 1


@pytest.mark.parametrize("piece", ["1", "1,", "1 ", "1.1", "$", "-", "1h", "a ", "(", "1'", "9:"])
def test_long_cells_take_no_time(piece):
    cells = [piece * 5000, *(f"${k}" for k in range(30))]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        TablePreprocessor().fit(pd.DataFrame({"a": cells, "b": range(31)}))
        short = [piece * (47 // len(piece)), *(f"${k}" for k in range(30))]
        TablePreprocessor().fit(pd.DataFrame({"a": short, "b": range(31)}))
    assert time.perf_counter() - start < 2
