"""The encoder of columns of dates."""

import numpy as np
import pandas as pd

from puicl_model.preprocessing.column import Column
from puicl_model.preprocessing.dates import as_seconds, have_zones, zone_of
from puicl_model.preprocessing.odd_numbers import stands_for_nothing
from puicl_model.preprocessing.placeholders import without
from puicl_model.preprocessing.spelling import Spelling

_DAY = 86_400.0


class DateColumn(Column):
    """Dates and times: days since 1970, and weekday, month and hour if they vary enough.

    Weekday, month and hour are local to the `zone` of the fit's dates, or UTC without one; dates
    that stand for months have no weekday. Days are counted in UTC, so that all hours have the same
    length. `zoned`: whether the dates have a zone or an offset; None if only some have. With a
    `spelling`, the constructor takes the column that it has read.
    """

    kind = "date"
    fields = ("fill", "parts", "indicator", "zone", "zoned")
    zone: str | None = None  # older versions only knew UTC
    zoned: bool | None = None  # older versions did not record it
    # A date that may stand for missing, in days since 1970; only set by a fit.
    nothing: float | None = None

    def __init__(self, column: pd.Series, indicator_share: float, spelling: Spelling | None = None):
        self.spelling = spelling
        zoned = have_zones(column)
        self.zone, self.zoned = zone_of(column), zoned.pop() if len(zoned) == 1 else None
        seconds = as_seconds(column)
        known = np.sort(seconds[~np.isnan(seconds)])
        self.fill = float(known[(len(known) - 1) // 2])
        self.indicator = bool(indicator_share <= np.isnan(seconds).mean() < 1)
        days = np.floor(known / _DAY)
        self.nothing = stands_for_nothing(days, of_days=True)
        long_enough = {
            "weekday": days[-1] - days[0] >= 14 and not _are_months(known, self.zone),
            "month": days[-1] - days[0] >= 730,
            "hour": True,
        }
        self.parts = [
            part
            for part, values in _calendar(known, self.zone).items()
            if long_enough[part] and len(np.unique(values)) > 1
        ]

    @property
    def endings(self):
        """See `Column`."""
        return ["", *(f" {part}" for part in self.parts), *[" is missing"] * self.indicator]

    def encode(self, column):
        """See `Column`."""
        seconds = as_seconds(column)
        missing = np.isnan(seconds)
        seconds = np.where(missing, self.fill, seconds)
        calendar = _calendar(seconds, self.zone)
        outputs = [seconds / _DAY, *(calendar[part] for part in self.parts)]
        return np.column_stack(outputs + [missing] * self.indicator).astype(float)

    def other_clock(self, column: pd.Series) -> bool:
        """Whether a date has a time zone although none of the fit's had one, or vice versa."""
        return self.zoned is not None and (not self.zoned) in have_zones(without(column))


def _clock(seconds: np.ndarray, zone: str | None) -> pd.DatetimeIndex:
    dates = pd.DatetimeIndex((seconds * 1e6).astype("datetime64[us]"))
    return dates.tz_localize("UTC").tz_convert(zone) if zone else dates


def _are_months(seconds: np.ndarray, zone: str | None) -> bool:
    """Whether dates stand for months, quarters or years: all on the same day of the month or last.

    Their weekdays are meaningless, since nothing happened on that day.
    """
    dates = _clock(seconds, zone)
    return bool(dates.day.nunique() == 1 or dates.is_month_end.all())


def _calendar(seconds: np.ndarray, zone: str | None) -> dict[str, np.ndarray]:
    dates = _clock(seconds, zone)
    return {
        "weekday": dates.day_of_week.to_numpy(),
        "month": dates.month.to_numpy(),
        "hour": dates.hour.to_numpy(),
    }
