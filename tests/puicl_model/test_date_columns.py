import datetime

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor


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


@pytest.mark.parametrize("slip", ["unknown", "2020-13-01", "31.12.2020", "20200105", 20200105])
def test_a_slip_in_a_column_of_dates_is_named(slip):
    dates = [str(day.date()) for day in pd.date_range("2020-01-01", periods=N)]
    dates[7] = slip
    with pytest.raises(ValueError, match=f"column d: row 7 holds {slip!r}, not a date, as nearly"):
        fit(a=numbers(), d=pd.Series(dates, dtype=object))
    few = pd.Series(["2020-01-01", "2020-02-01", "unknown"] * N)[:N]
    assert fit(a=numbers(), d=few)[0].kinds_["d"] == "category"
