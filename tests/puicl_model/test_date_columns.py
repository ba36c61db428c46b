import datetime
import json
import warnings
from zoneinfo import ZoneInfo

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
    np.testing.assert_allclose(np.diff(out["d"]), 7 / 24)


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


@pytest.mark.parametrize("slip", ["n/d", "2020-13-01", "31/12/20", "20200105", 20200105])
def test_a_slip_in_a_column_of_dates_is_named(slip):
    dates = [str(day.date()) for day in pd.date_range("2020-01-01", periods=N)]
    dates[7] = slip
    with pytest.raises(ValueError, match=f"column d: row 7 holds {slip!r}, not a date, as nearly"):
        fit(a=numbers(), d=pd.Series(dates, dtype=object))
    fitted = TablePreprocessor().fit(pd.DataFrame({"d": dates[:7]}))
    with pytest.raises(ValueError, match=f"row 1 holds {slip!r}, not a date; text must be like"):
        fitted.transform(pd.DataFrame({"d": [dates[0], slip, slip]}, dtype=object))
    few = pd.Series(["2020-01-01", "2020-02-01", "n/d"] * N)[:N]
    assert fit(a=numbers(), d=few)[0].kinds_["d"] == "category"


@pytest.mark.parametrize("form", ["column", "objects", "polars"])
def test_weekday_month_and_hour_are_those_of_the_tables_own_clock(form):
    berlin = ZoneInfo("Europe/Berlin")  # pandas 2 makes the name pytz's, not known to polars
    here = pd.Series(pd.date_range("2021-03-01", periods=N, freq="29D", tz=berlin))
    table = pd.DataFrame({"d": here if form == "column" else here.astype(object)})
    if form == "polars":
        table = pytest.importorskip("polars").DataFrame({"d": here.dt.to_pydatetime().tolist()})
    fitted = TablePreprocessor()
    out = pd.DataFrame(fitted.fit_transform(table), columns=fitted.get_feature_names_out())
    # Its midnights are 22 or 23 o'clock of the day before elsewhere.
    assert list(out) == ["d", "d weekday", "d month"]
    np.testing.assert_array_equal(out["d weekday"], here.dt.day_of_week)
    np.testing.assert_array_equal(out["d month"], here.dt.month)
    # The same moments by another clock, and as a file has them.
    elsewhere = here.dt.tz_convert("America/New_York")
    saved = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    for column in (
        elsewhere,
        elsewhere.dt.tz_convert("UTC").dt.tz_localize(None),
        elsewhere.map(str),
    ):
        np.testing.assert_array_equal(saved.transform(pd.DataFrame({"d": column})), out)


@pytest.mark.parametrize("form", ["column", "text", "objects"])
@pytest.mark.filterwarnings("error")
def test_new_dates_by_another_clock_than_the_fits_are_told(form):
    """Local times that have lost their zone would be hours off, and another weekday."""
    forms = {
        "column": lambda dates: dates,
        "text": lambda dates: dates.map(lambda moment: moment.isoformat()),
        "objects": lambda dates: dates.astype(object),
    }
    plain = pd.Series(pd.date_range("2021-03-01", periods=N, freq="7h"))
    zoned = plain.dt.tz_localize("America/New_York")
    for dates, others, sentence in (
        (zoned, plain, "dates without a time zone, which the fit's have: they"),
        (plain, zoned, "dates with a time zone, which the fit's have not: the fit's"),
    ):
        fitted = TablePreprocessor().fit(pd.DataFrame({"d": forms[form](dates)}))
        fitted = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
        for same in (dates, dates.map(lambda moment: moment.isoformat()), [None], [pd.NaT]):
            fitted.transform(pd.DataFrame({"d": same}))
        with pytest.warns(UserWarning, match=f"column d holds {sentence} are read as UTC"):
            fitted.transform(pd.DataFrame({"d": forms[form](others)}))
        one_of_them = pd.Series([dates[0], others[1]], dtype=object)
        with pytest.warns(UserWarning, match=f"column d holds {sentence} are read as UTC"):
            fitted.transform(pd.DataFrame({"d": one_of_them}))


@pytest.mark.parametrize("as_text", [False, True])
def test_a_column_of_which_some_dates_have_a_time_zone_is_told(as_text):
    """A local time beside one with its zone is hours off."""
    dates = pd.Series(pd.date_range("2021-03-01", periods=N, freq="7h"), dtype=object)
    dates[::2] = [moment.tz_localize("Asia/Tokyo") for moment in dates[::2]]
    table = pd.DataFrame({"d": dates.map(str) if as_text else dates, "other": dates.map(str)[0]})
    sentence = "dates with and without a time zone: d; the latter are read as UTC"
    with pytest.warns(UserWarning, match=f"^{sentence}$"):
        fitted = TablePreprocessor().fit(table)
    assert fitted.doubts_ == [sentence]
    hours = [m.tz_convert("UTC").hour if m.tzinfo else m.hour for m in dates]
    np.testing.assert_array_equal(fitted.transform(table)[:, 1], hours)
    assert fitted.kinds_["d"] == "date"
    fitted = TablePreprocessor.from_state(json.loads(json.dumps(fitted.state())))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        fitted.transform(table)


@pytest.mark.parametrize("offset", ["Z", "z", " UTC", " GMT", "+02", "-0500", "+02:00 "])
def test_a_time_zone_is_seen_however_its_offset_is_written(offset):
    moments = pd.Series(pd.date_range("2021-03-01", periods=N, freq="7h"))
    local = moments.dt.strftime("%Y-%m-%d %H:%M")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(d=local)
    local[::2] += offset
    with pytest.warns(UserWarning, match="dates with and without a time zone: d"):
        assert fit(d=local)[0].kinds_ == {"d": "date"}


def test_dates_without_leading_zeros_and_numpys_are_dates_and_levels_are_none():
    dates = pd.Series(pd.date_range("2021-03-01", periods=N, freq="29h"))
    plain = fit(d=dates)[1]
    short = [f"{d.year}-{d.month}-{d.day} {d.hour}:00" for d in dates]
    objects = pd.Series(list(dates.to_numpy()), dtype=object)
    assert {type(moment) for moment in objects} == {np.datetime64}
    for column in (short, objects):
        pd.testing.assert_frame_equal(fit(d=column)[1], plain)
    levels = pd.Series(pd.Categorical(np.resize(["2021-03-01", "2021-03-02"], N)))
    assert fit(d=levels, x=numbers())[0].kinds_["d"] == "category"


@pytest.mark.parametrize("name", ["my own", "/my/own", ""])
def test_dates_of_several_zones_and_of_a_zone_without_a_name_are_read_by_utc(name):
    utc = pd.Series(pd.date_range("2021-03-01", periods=N, freq="7h", tz="UTC"))
    odd = datetime.timezone(datetime.timedelta(hours=2), name)
    mixed = [
        moment.tz_convert("Asia/Tokyo" if row % 2 else "UTC") for row, moment in enumerate(utc)
    ]
    plain = fit(d=utc.dt.tz_localize(None))[1]
    for column in (pd.Series(mixed, dtype=object), utc.dt.tz_convert(odd)):
        pd.testing.assert_frame_equal(fit(d=column)[1], plain)


def test_a_state_from_before_there_were_zones_is_read_by_utc():
    fitted, out = fit(d=pd.date_range("2021-03-01", periods=N, freq="7h"))
    older = json.loads(json.dumps(fitted.state()))
    del older["encoders"]["0"]["zone"], older["encoders"]["0"]["zoned"]
    again = TablePreprocessor.from_state(older)
    table = pd.DataFrame({"d": pd.date_range("2021-03-01", periods=N, freq="7h")})
    np.testing.assert_array_equal(again.transform(table), out)


@pytest.mark.parametrize("kind", ["number", "date"])
def test_a_word_for_nothing_in_a_third_of_a_column_is_named(kind):
    """Taken for levels such numbers were mostly lost, and nothing said so."""
    days = pd.Series(pd.date_range("2020-01-01", periods=N, freq="D")).dt.strftime("%Y-%m-%d")
    cells = (days if kind == "date" else pd.Series([f"{1.5 * i}" for i in range(N)])).astype(object)
    cells[cells.index % 3 == 1] = "n/d"
    with pytest.raises(ValueError, match=rf"column d: row 1 holds 'n/d', not a {kind}, as most"):
        fit(d=cells)
    few = pd.Series([*"1234", "n/d", "n/d"] * N, dtype=object)[:N]
    assert fit(d=few, x=numbers())[0].kinds_["d"] == "category"


def test_seconds_of_times_of_day_count_to_the_last_digit():
    times = [datetime.time(row % 24, 7, row, 250_000) for row in range(N)]
    _, out = fit(t=times)
    expected = [row % 24 * 3600 + 7 * 60 + row + 0.25 for row in range(N)]
    np.testing.assert_array_equal(out["t"], expected)


@pytest.mark.parametrize(
    ("days", "parts"),
    [(13, []), (14, ["weekday"]), (729, ["weekday"]), (730, ["weekday", "month"])],
)
def test_weekdays_count_from_two_weeks_on_and_months_from_two_years_on(days, parts):
    passed = np.append(np.random.default_rng(0).integers(0, days, N - 1), days)
    passed[0] = 0
    _, out = fit(d=pd.Timestamp("2021-03-01") + pd.to_timedelta(passed, unit="D"))
    assert list(out) == ["d", *(f"d {part}" for part in parts)]


@pytest.mark.parametrize("form", ["first", "last", "billed", "quarters", "zone"])
def test_dates_that_stand_for_months_have_no_weekday(form):
    months = pd.period_range("2021-01", periods=N, freq="M")
    first = months.to_timestamp()
    column = {
        "first": first,
        "last": (first + pd.offsets.MonthEnd()).strftime("%Y-%m-%d"),
        "billed": first + pd.Timedelta(days=14, hours=9),
        "quarters": pd.period_range("2021Q1", periods=N, freq="Q"),
        "zone": first.tz_localize("Asia/Tokyo"),  # the last of the months by UTC
    }[form]
    fitted, out = fit(d=pd.Series(column))
    assert fitted.kinds_ == {"d": "date"}
    assert list(out) == ["d", "d month"]
    _, out = fit(d=first + pd.to_timedelta(np.arange(N) % 2, unit="D"))
    assert list(out) == ["d", "d weekday", "d month"]


def test_a_missing_date_is_the_median_and_has_a_column_that_says_so():
    days = pd.Series(pd.date_range("2021-03-01", periods=N, freq="D"))
    days[[3, 4, 39]] = pd.NaT
    _, out = fit(d=days)
    np.testing.assert_array_equal(out["d is missing"], days.isna())
    known = np.sort(out["d"][days.notna()])
    assert (out["d"][days.isna()] == known[(len(known) - 1) // 2]).all()
    whole = days.fillna(pd.Timestamp("2021-03-09"))
    assert "d is missing" not in fit(d=whole)[1]


@pytest.mark.parametrize("nothing", ["9999-12-31", "1900-01-01", "1970-01-01"])
def test_a_date_far_from_all_others_is_told_of_where_it_repeats(recwarn, nothing):
    days = pd.Series(pd.date_range("2020-01-01", periods=N, freq="5D").strftime("%Y-%m-%d"))
    days.iloc[:2] = nothing
    fit(a=days)
    assert not recwarn
    days.iloc[:3] = nothing
    with pytest.warns(UserWarning, match=rf"far from all others and repeated: a \({nothing}\)"):
        fit(a=days)
