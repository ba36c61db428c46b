"""Times of day and durations, which are numbers: seconds."""

import datetime
import io
import pickle

import numpy as np
import pandas as pd
import pytest
from columns_read import N, fit, numbers

from puicl_model import TablePreprocessor


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


@pytest.mark.parametrize("kind", [object, "str", "string", "category"])
def test_times_of_day_in_text_are_seconds(kind):
    rng = np.random.default_rng(0)
    minutes = rng.integers(0, 1440, N)
    text = pd.Series([f"{m // 60}:{m % 60:02}" for m in minutes], dtype=object)
    text[1] = "09:30:15.5"
    text[2] = "?"
    fitted, out = fit(a=text.astype(kind), b=numbers())
    assert fitted.kinds_["a"] == ("text that names rows" if kind == "category" else "number")
    if kind != "category":
        known = np.setdiff1d(np.arange(N), [1, 2])
        np.testing.assert_array_equal(out["a"][known], 60.0 * minutes[known])
        assert out["a"][1] == 9 * 3600 + 30 * 60 + 15.5
        later = pd.DataFrame({"a": [datetime.time(1, 0), None, "0:01"], "b": 0.0})
        np.testing.assert_array_equal(
            fitted.transform(later)[:, 0], [3600, np.sort(out["a"])[(N - 1) // 2], 60]
        )


def test_durations_as_python_and_pandas_write_them_are_seconds():
    seconds = np.random.default_rng(0).integers(-90_000, 900_000, N)
    deltas = [datetime.timedelta(seconds=int(s)) for s in seconds]
    written = pd.DataFrame({"pandas": deltas, "python": [str(delta) for delta in deltas]})
    table = pd.read_csv(io.StringIO(written.assign(b=numbers()).to_csv(index=False)))
    assert "1 day, " in " ".join(table["python"])
    assert "-1 days +" in " ".join(table["pandas"])
    fitted, out = fit(**{name: table[name] for name in ("pandas", "python")}, deltas=deltas)
    copies = dict.fromkeys(["python", "deltas"], "equal to pandas")
    assert fitted.kinds_ == {"pandas": "number", **copies}
    np.testing.assert_array_equal(out["pandas"], seconds)
    hours = fit(a=[f"{90 + k}:30:15" for k in range(N)], b=numbers())[1]["a"]
    np.testing.assert_array_equal(hours, 3600 * (90 + np.arange(N)) + 1815)


@pytest.mark.parametrize("form", ["%I:%M %p", "%I:%M:%S%p", "%I %p"])
def test_times_of_twelve_hours_are_those_of_twenty_four(form):
    """By their text, 1:00 PM would stand before 9:00 AM."""
    minutes = np.arange(N) * 45 % 1440
    if form == "%I %p":
        minutes -= minutes % 60
    times = [datetime.time(m // 60, m % 60) for m in minutes.tolist()]
    upper = [f"{time:{form}}" for time in times]
    lower = [text.lstrip("0").lower().replace("m", ".m.") for text in upper]
    fitted, out = fit(a=upper, b=numbers(), lower=lower, times=times)
    assert fitted.kinds_ == {"a": "number", "b": "number"} | dict.fromkeys(
        ["lower", "times"], "equal to a"
    )
    np.testing.assert_array_equal(out["a"], 60.0 * minutes)


@pytest.mark.parametrize(
    "cell", ["9:75", "9:3", "123:10", "1234:10:00", "1:2:3", "noon", "2 days", "13:10 PM", "10 pM"]
)
def test_what_is_no_time_of_day_is_not_read_as_one(cell):
    text = np.where(np.arange(N) % 2, "9:30", cell)
    fitted, _ = fit(a=text, b=numbers())
    assert fitted.kinds_["a"] == "category"


def test_new_rows_in_other_units_are_refused():
    hours = pd.Series([f"{k % 24}:00" for k in range(N)])
    fitted, _ = fit(a=hours)
    with pytest.raises(
        ValueError, match=r"column a: row 0 holds 9(\.0)?, not a time of day or a dura"
    ):
        fitted.transform(pd.DataFrame({"a": [9.0]}))
    fitted, _ = fit(a=np.arange(N) % 24)
    with pytest.raises(ValueError, match="column a: row 1 holds '9:00', not a number"):
        fitted.transform(pd.DataFrame({"a": [None, "9:00"]}))
    again = TablePreprocessor.from_state(fitted.state())
    with pytest.raises(ValueError, match="not a number"):
        again.transform(pd.DataFrame({"a": ["9:00"]}))
    older = pickle.loads(pickle.dumps(fitted))
    for encoder in older._encoders.values():
        del encoder.times
    assert older.transform(pd.DataFrame({"a": [None, 3]}))[1] == 3
    older = fitted.state()
    del older["encoders"]["0"]["times"]  # files of before do not ask
    assert TablePreprocessor.from_state(older).transform(pd.DataFrame({"a": ["9:00"]})) == 9 * 3600


def test_durations_of_one_second_each_are_no_row_numbers():
    pl, pa = (pytest.importorskip(name) for name in ("polars", "pyarrow"))
    pandas = pd.DataFrame({"a": pd.to_timedelta(np.arange(N), unit="s")})
    polars = pl.DataFrame({"a": [datetime.timedelta(seconds=k) for k in range(N)]})
    for table in (pandas, polars, pa.Table.from_pandas(pandas)):
        np.testing.assert_array_equal(TablePreprocessor().fit_transform(table)[:, 0], np.arange(N))
