"""Read dates, months and quarters in everyday notation: 31.12.2024, 31 Dec 2024, Q4 2024."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from puicl_model.preprocessing.dates import is_date
from puicl_model.preprocessing.spelling import Spelling, reads_all

MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
YEAR = r"(?:1[5-9]|20)\d\d"
_YEAR = rf"(?P<year>{YEAR})"
# May precede a date: Tuesday,
WEEKDAY = r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? "
# May follow a date: 18:57, 06:57:03 PM
_TIME = (
    r"(?:(?:,? +|T)(?P<hour>\d{1,2}):(?P<minute>[0-5]\d)"
    r"(?::(?P<second>[0-5]\d)(?:\.(?P<parts>\d{1,6})\d*)?)?"
    r"(?: ?(?P<half>[AP])\.?M\.?)?)?"
)
_TWO_NUMBERS = re.compile(
    rf"(?:{WEEKDAY})?(?P<first>\d{{1,2}})(?P<mark>[./-]) ?(?P<other>\d{{1,2}})(?P=mark) ?{_YEAR}"
    rf"{_TIME}",
    re.IGNORECASE,
)
_DAYS = tuple(
    re.compile(f"(?:{WEEKDAY})?{form}{_TIME}", re.IGNORECASE)
    for form in (
        rf"{_YEAR}\.(?P<number>\d{{1,2}})\.(?P<day>\d{{1,2}})\.?",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[ /-]?(?P<name>{MONTH})[ ,/-]*{_YEAR}",
        rf"(?P<name>{MONTH})[ -]?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,? |-){_YEAR}",
        rf"{_YEAR}[ -](?P<name>{MONTH})[ -](?P<day>\d{{1,2}})",
    )
)
_MONTHS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"{_YEAR}[-/](?P<number>\d{{1,2}})",
        # Not 9-1700, which may mean from 9 to 17 hours.
        rf"(?P<number>\d{{1,2}})(?:[/.]|-(?=19|20)){_YEAR}",
        rf"(?P<name>{MONTH}),?[ -]?{_YEAR}",
        rf"{_YEAR}[ -]?(?P<name>{MONTH})",
        rf"{_YEAR}[ /-]?(?P<part>[QH])(?P<count>[1-4])",
        rf"(?P<part>[QH])(?P<count>[1-4])[ /-]?{_YEAR}",
        rf"(?P<count>[1-4])(?P<part>[QH])[ /-]?{_YEAR}",
    )
)
# 2010-11 and 2011-12 may be seasons that begin in one year and end in the next.
_SEASON = re.compile(r"\d\d(\d\d)[-/](\d\d)")


@dataclass(frozen=True)
class DateSpelling(Spelling):
    """Days or months in any unambiguous notation; days may be mixed with those like 2024-12-31.

    day_first: whether 1/2/2024 is in February, None if the fit did not tell; months: whether the
    cells are months, quarters or halves of a year, which are read as their first day.
    """

    kind: ClassVar[str] = "date"
    what: ClassVar[str] = "a date"

    day_first: bool | None
    months: bool

    def of_text(self, cell):
        """See `Spelling`; returns text like 2024-12-31."""
        if self.months:
            found = next(_found(_MONTHS, cell), None)
        elif is_date(cell):
            return cell
        elif found := _TWO_NUMBERS.fullmatch(cell):
            return self._of_two_numbers(found)
        else:
            found = next(_found(_DAYS, cell), None)
        if found is None:
            return None
        return _iso(found, _month(found.groupdict()), int(found.groupdict().get("day") or 1))

    def of_other(self, cell):
        """See `Spelling`."""
        return cell if is_date(cell) else None

    def _of_two_numbers(self, found: re.Match[str]) -> str | None:
        numbers = int(found["first"]), int(found["other"])
        day_first = True if found["mark"] == "." else self.day_first
        if day_first is None:
            return None
        day, month = numbers if day_first else numbers[::-1]
        return _iso(found, month, day)


def date_spelling(texts: Sequence[str], others: Sequence[Any]) -> DateSpelling | None:
    """The notation in which all cells are dates; None if there is none or more than one.

    texts: the distinct texts; others: cells that are not text.
    """
    # Skip ISO dates: a column with no other notation is read elsewhere.
    first = next((text for text in texts if not is_date(text)), "")
    months = next(_found(_MONTHS, first), None) is not None
    if not (months or next(_found((_TWO_NUMBERS, *_DAYS), first), None)):
        return None
    other = [text for text in texts if not is_date(text)]
    if months and (all(map(_is_season, other)) or len(set(map(_period, other))) > 1):
        return None
    two = [found for text in other if (found := _TWO_NUMBERS.fullmatch(text))]
    open_ones = [found for found in two if found["mark"] != "."]
    ways = {int(found["first"]) > 12 for found in open_ones if _tells(found)}
    if len(ways) > 1 or (open_ones and not ways):
        return None
    spelling = DateSpelling(max(other, key=len), next(iter(ways), None), months)
    return spelling if reads_all(spelling, texts, others) else None


def _found(forms: Sequence[re.Pattern[str]], cell: str) -> Iterator[re.Match[str]]:
    return (found for form in forms if (found := form.fullmatch(cell)))


def _month(parts: dict[str, str]) -> int:
    """Number of the month, or of a quarter's or half's first month; 13 if there is no such part."""
    if parts.get("name"):
        return _NAMES.index(parts["name"][:3].lower()) + 1
    if not parts.get("part"):
        return int(parts["number"])
    long = 3 if parts["part"] in "Qq" else 6
    return min(13, 1 + long * (int(parts["count"]) - 1))


def _tells(found: re.Match[str]) -> bool:
    """Whether one of the two numbers cannot be a month, so that their order is known."""
    return max(int(found["first"]), int(found["other"])) > 12


def _period(text: str) -> str:
    """Q for a quarter, H for half a year, else empty; mixed, Q1 and H1 would be the same date."""
    found = next(_found(_MONTHS, text), None)
    return (found.groupdict().get("part") or "").upper() if found else ""


def _is_season(text: str) -> bool:
    found = _SEASON.fullmatch(text)
    return found is not None and int(found[2]) == (int(found[1]) + 1) % 100


def _iso(found: re.Match[str], month: int, day: int) -> str | None:
    """ISO text of the day and the time that was `found` after it; None if there is no such day."""
    parts = found.groupdict()
    hour = int(parts.get("hour") or 0)
    if half := parts.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half.lower() == "p")
    try:
        moment = dt.datetime(
            int(found["year"]),
            month,
            day,
            hour,
            int(parts.get("minute") or 0),
            int(parts.get("second") or 0),
            int((parts.get("parts") or "").ljust(6, "0")),
        )
    except ValueError:
        return None
    return moment.isoformat(sep=" ")
