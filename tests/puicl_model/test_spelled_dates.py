"""Dates, months, times of the half day, durations, angles and feet as people write them."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, fit_cells, numbers

from puicl_model import TablePreprocessor

DATES = {
    "31.12.2024|1.2.2023": ["2024-12-31", "2023-02-01"],
    "31. 12. 2024|1. 2. 2023": ["2024-12-31", "2023-02-01"],
    "1.2.2024|3.4.2024": ["2024-02-01", "2024-04-03"],  # with points the day comes first
    "31/12/2024|1/2/2023": ["2024-12-31", "2023-02-01"],
    "12/31/2024|1/2/2023": ["2024-12-31", "2023-01-02"],
    "13/1/2024|1/2/2023": ["2024-01-13", "2023-02-01"],
    "12-31-2024 18:57|01-02-2023 06:05:30": ["2024-12-31 18:57", "2023-01-02 06:05:30"],
    "12/31/2024 6:57 PM|01/02/2023 12:05 a.m.": ["2024-12-31 18:57", "2023-01-02 00:05"],
    "31.12.2024, 06:57:03 pm|1.1.2024, 12:00:00 PM": ["2024-12-31 18:57:03", "2024-01-01 12:00"],
    "31.12.2024 18:57:03.25|31.12.2024 18:57:03.7501239": [
        "2024-12-31 18:57:03.25",
        "2024-12-31 18:57:03.750123",
    ],
    "31 Dec 2024|1 January 2023 18:57": ["2024-12-31", "2023-01-01 18:57"],
    "31-Dec-2024|01-sept-2023": ["2024-12-31", "2023-09-01"],
    "3rd March 2020|21st May, 2021": ["2020-03-03", "2021-05-21"],
    "Dec 31, 2024|March 3rd, 2020": ["2024-12-31", "2020-03-03"],
    "2024.12.31|2023.1.5": ["2024-12-31", "2023-01-05"],
    "2024-05-31|31.5.2023": ["2024-05-31", "2023-05-31"],
    "2024-12|2023-01|2020-05": ["2024-12-01", "2023-01-01", "2020-05-01"],
    "2010-11|2010-12|2011-01": ["2010-11-01", "2010-12-01", "2011-01-01"],
    "Tuesday, 31 December 2024|Wed 1. Jan 2025": ["2024-12-31", "2025-01-01"],
    "2024 Dec 31|2023-Jan-05": ["2024-12-31", "2023-01-05"],
    "12/2024|1/2023": ["2024-12-01", "2023-01-01"],
    "Q3 2024|Q1 2023|4q2022": ["2024-07-01", "2023-01-01", "2022-10-01"],
    "2024-H2|2023-H1|2022 H2": ["2024-07-01", "2023-01-01", "2022-07-01"],
    "Dec 2024|January 2023|2022 Feb": ["2024-12-01", "2023-01-01", "2022-02-01"],
}
NUMBERS = {
    "46°12'30\"N|10°6'S": [46 + 12.5 / 60, -10.1],
    "46° 12.5′ N|S 10.5°|-3°": [46 + 12.5 / 60, -10.5, -3],
    "46.2N|10.5 S": [46.2, -10.5],
    "200° E|5.5° E": [200, 5.5],
    "5'11\"|6'2\"|5'": [71, 74, 60],
    "5 ft 11 in|6 ft 2 in|5 ft": [71, 74, 60],
    "1h 20m|45m|2h": [4800, 2700, 7200],
    "12 months|1 year|2 years, 1 month": [31557600, 31557600, 65745000],
    "2 hours and 5 min|1 hour": [7500, 3600],
    "1d 2h|30 min": [26 * 3600, 1800],
    "2 years, 6 months|1 year": [(2 * 365.25 + 6 * 30.4375) * 86400, 365.25 * 86400],
    "6:57 PM|11:05 am|12:00 a.m.": [68220, 39900, 0],
    "6pm|7 am|12 p.m.": [64800, 25200, 43200],
    "3 1/2|2-1/4|1|3/4": [3.5, 2.25, 1, 0.75],
    "PT1H20M|P1DT2H|PT30.5S": [4800, 26 * 3600, 30.5],
}
UNREAD = [
    "01/02/2024|03/04/2024",  # of either order
    "31/12/2024|12/31/2024",  # of both
    "2010-11|2011-12|1999-00",  # seasons
    "31/12/24|1/1/23",  # of what century?
    "Dec-24|Jan-23",
    *(
        "30 Feb 2024|1 Mar 2024",
        "31.13.2024|1.2.2024",
        "2024-13|2024-12",
        "1 Dec 2024 25:00|1 May 2023",
    ),
    *("1 Dec 2024 13:00 PM|2 Dec 2024 1:00 PM", "1 Dec 2024|Dec 2024", "1.2.2024|2024"),
    *("46N|10S|5N", "N 46.2 S|10.5 S", "-46.2 S|10.5 S", "46°70'N|1°5'N", "400.5 N|1.5 N"),
    *("0.5W|1.5W", "1.5S|2.5S|1.5W", "S1.2|S1.10|S2.1", "N 46°|E 7°"),  # watts, rooms, both circles
    *("Q1 2024|H1 2024", "2024-01|2024-Q1"),
    *("8-1600|9-1700|10-1800", "10-2034|11-1789"),  # hours, parts
    *("5'13\"|6'2\"", "20m 1h|1h", "1h 1h|2h", "1h 5 kg|1h", "13:05 PM|1:05 PM"),
    *("1 Dec 2024 0:05 PM|2 Dec 2024 1:05 PM", "5'12\"|6'2\"", "365°30'|10°"),
    *("95.5N|5.5S", "3 2/2|1 1/2", "1h 20m 5|2h"),
    *(
        "1/2|3/4|1",
        "3 5/4|1 1/2",
        "120/80|110/70",
        "PT|P1D",
        "P1M|P1Y",
        "H3 2024|H1 2024",
        "Q5 2024|Q1 2024",
    ),
    "5 apples 3 pears|2 pears",
]


@pytest.mark.parametrize("text", DATES)
def test_dates_that_leave_one_reading_are_those_of_iso(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted, out = fit_cells(text)
        iso, expected = fit_cells("|".join(DATES[text]))
    assert fitted.kinds_["a"] == "date"
    pd.testing.assert_frame_equal(out, expected)
    again = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    new, plain = (pd.DataFrame({"a": cells, "b": 0.0}) for cells in (text.split("|"), DATES[text]))
    np.testing.assert_array_equal(again.transform(new), iso.transform(plain))


@pytest.mark.parametrize("text", NUMBERS)
def test_measures_in_several_parts_are_numbers(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted, out = fit_cells(text)
    assert fitted.kinds_["a"] == "number"
    np.testing.assert_allclose(out["a"], np.resize(NUMBERS[text], 12), rtol=1e-14)
    again = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    new = pd.DataFrame({"a": text.split("|"), "b": 0.0})
    np.testing.assert_array_equal(again.transform(new)[:, 0], fitted.transform(new)[:, 0])


@pytest.mark.parametrize("text", UNREAD)
@pytest.mark.filterwarnings("ignore")
def test_what_could_be_read_in_two_ways_or_is_no_date_is_not(text):
    fitted, _ = fit_cells(text)
    assert fitted.kinds_["a"] == "category"


@pytest.mark.parametrize(
    ("fitted_to", "new", "kind"),
    [
        ("31.12.2024|1.2.2023", "1/2/2023", "a date"),  # nothing at the fit said its order
        ("31.12.2024|1.2.2023", "2024", "a date"),
        ("31.12.2024|1.2.2023", "Dec 2024", "a date"),
        ("31.12.2024|1.2.2023", 20241231, "a date"),
        ("12/31/2024|1/2/2023", "31/12/2024", "a date"),
        ("Dec 2024|January 2023|2022 Feb", "1 Dec 2024", "a date"),
        ("1h 20m|45m|2h", "2 weeks", "a number"),
        ("1h 20m|45m|2h", 80, "a number"),
        ("5'11\"|6'2\"|5'", 71, "a number"),
        ("3 1/2|2-1/4|1", 1.5, "a number"),
        ("3 1/2|2-1/4|1", -1, "a number"),
    ],
)
def test_new_rows_that_are_written_otherwise_are_refused(fitted_to, new, kind):
    fitted, _ = fit_cells(fitted_to)
    rows = pd.DataFrame({"a": pd.Series([fitted_to.split("|")[0], new], dtype=object), "b": 0.0})
    sentence = f"column a: row 1 holds {new!r}, not {kind} written like "
    with pytest.raises(ValueError, match=re.escape(sentence)):
        fitted.transform(rows)


@pytest.mark.parametrize(
    ("fitted_to", "new", "same"),
    [
        ("31.12.2024|1.2.2023", "2024-02-01", "1.2.2024"),
        ("31.12.2024|1.2.2023", "1 Feb 2024", "1.2.2024"),
        ("31.12.2024|1.2.2023", pd.Timestamp(2024, 2, 1), "1.2.2024"),
        ("3 1/2|2-1/4|1", 2, "2"),
        ("3 1/2|2-1/4|1", 2.0, "2"),
    ],
)
def test_new_rows_may_have_another_spelling_that_leaves_one_reading(fitted_to, new, same):
    fitted, _ = fit_cells(fitted_to)
    rows = pd.DataFrame({"a": pd.Series([new, same], dtype=object), "b": 0.0})
    out = fitted.transform(rows)
    np.testing.assert_array_equal(out[0], out[1])


def test_months_have_no_weekday_and_days_have_one():
    months, _ = fit(a=[f"{1 + k % 12}/{2000 + k}" for k in range(N)])
    assert list(months.get_feature_names_out()) == ["a", "a month"]
    days, _ = fit(a=[f"{1 + k % 28}.{1 + k % 12}.{2000 + k}" for k in range(N)])
    assert list(days.get_feature_names_out()) == ["a", "a weekday", "a month"]


def test_a_missing_date_is_one_whatever_the_spelling():
    cells = ["31.12.2024", None, "?", "1.2.2023"] * 5
    plain = ["2024-12-31", None, "?", "2023-02-01"] * 5
    (fitted, out), (_, expected) = (fit(a=c, b=numbers()[:20]) for c in (cells, plain))
    assert "a is missing" in out
    pd.testing.assert_frame_equal(out, expected)
    assert fitted.kinds_["a"] == "date"


@pytest.mark.parametrize(
    "text",
    [
        *("01/02/2024|03/04/2024|05/06/2024", "31/12/24|1/1/23|2/2/22", "Dec-24|Jan-23|Feb-22"),
        *("2010-11|2011-12|2008-09", "18 kg|20|7 kg|8 kg|9 kg", "12.5%|10|11%|13%", "$5|€7|$9"),
        *("46°12'N|46.2|10°5'S|9°6'S", "1,234|1234|12,500|13,700", "1.250 kg|2 kg|3.125 kg"),
    ],
)
def test_what_looks_like_dates_or_numbers_and_is_not_read_is_told(text):
    with pytest.warns(UserWarning, match=r"taken for categories: a \(such as"):
        fitted, _ = fit_cells(text)
    assert fitted.kinds_["a"] == "category"
