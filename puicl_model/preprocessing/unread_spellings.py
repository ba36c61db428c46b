"""Detect text that looks like numbers or dates in a notation that cannot be read for certain."""

import math
import re
from collections.abc import Sequence
from itertools import islice

from puicl_model.preprocessing.amounts import FEWEST_OF_A_UNIT
from puicl_model.preprocessing.dates import is_date
from puicl_model.preprocessing.judging import MANY_LEVELS
from puicl_model.preprocessing.magnitudes import factors
from puicl_model.preprocessing.number_cells import CURRENCY_SIGNS, DASHES
from puicl_model.preprocessing.spelled_dates import MONTH, WEEKDAY, YEAR
from puicl_model.preprocessing.spelled_measures import PART_OF_ONE

# Signs and abbreviations of currencies.
_MONEY = rf"(?:[A-Z]{{0,2}}[{CURRENCY_SIGNS}]|Rs\.?)"
# 10 %, $5, -$5; 1.234, 1'234,50, 1 234; 7,5; (5), 5- and 5 DR; with a typographer's minus, −5;
# $1.2M; 1,5e3, 1.5 x 10^3.
_NUMBER = rf"[+\-{DASHES}]?\d[\d.,'’\u00a0\u202f]*"
_SPELLINGS = re.compile(
    rf"[+\-{DASHES}]?{_MONEY}\s?{_NUMBER}\s?[kKmMbB]?|{_NUMBER}\s?(?:[%‰％]|{_MONEY})"
    rf"|{_MONEY}?\s?\({_MONEY}?\s?{_NUMBER}\)|[{DASHES}]{_NUMBER}|{_NUMBER}\s?(?:[\-{DASHES}]|[CD][Rr])"
    r"|[+-]?\d{1,3}([.,'’\u00a0\u202f ])\d{3}(\1\d{3})*([.,]\d+)?|[+-]?\d+,\d+([eE][+-]?\d+)?"
    rf"|{_NUMBER}\s?[x×·]\s?10\^[+\-{DASHES}]?\d+"
)
# 18 kg, 1.5h, USD 1 200, 5 mg/dl, 20 °C; needs several of one unit. 10A and 11A are flats.
_MEASURED = re.compile(
    rf"(?P<before>[A-Z]{{3}}\s)?{_NUMBER}( \d{{3}})*"
    r"(?P<after>(?![A-Z]$)\s?°?[^\W\d_]{1,12}[²³]?(/[^\W\d_]{1,12})?)?"
)
# 31.12.2024, 12/31/24
_DAYS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})")
# 2024.12.31; 31 Dec 2024, 31-Dec-24, 31st December 2024, December 31, 2024, 2024 Dec 31
_OTHER_DAYS = re.compile(
    r"\d{4}\.\d{1,2}\.\d{1,2}"
    rf"|\d{{1,2}}(?:\.|st|nd|rd|th)?[ -]?{MONTH}[ ,-]*(?:\d{{4}}|\d{{2}})"
    rf"|{MONTH} ?\d{{1,2}},? \d{{4}}|\d{{4}}[ -]{MONTH}[ -]\d{{1,2}}",
    re.IGNORECASE,
)
# 2024-12, 12/2024; Dec 2024, Dec-24: months
_OF_A_YEAR = "(?:0?[1-9]|1[0-2])"
_MONTHS = re.compile(
    rf"{YEAR}[-/]{_OF_A_YEAR}|{_OF_A_YEAR}[-/.]{YEAR}|{MONTH}[ -](?:{YEAR}|\d\d)"
    rf"|{YEAR}[ -]{MONTH}",
    re.IGNORECASE,
)
# Quarters, halves and weeks, which would sort by these before the year: Q3 2024, 3Q24, H1/2024,
# W05-2024
_QUARTERS = re.compile(
    rf"(?:Q[1-4]|H[12])(?:[ /'’-]?{YEAR}|[ /'’-]\d\d)|(?:[1-4]Q|[12]H)[ '’]?(?:{YEAR}|\d\d)"
    rf"|(?:[CK]?W|[Ww][Kk]|[Ww]eek) ?\d{{1,2}}(?:[ /-]|, ){YEAR}"
)
# 1h 20m, 45 min, 2 yrs 3 mos; PT1H20M
_PART = (
    r"\d+(?:\.\d+)?\s?(?:y|yrs?|years?|mos?|months?|w|wks?|weeks?|d|days?|h|hrs?|hours?|m|mins?"
    r"|minutes?|s|secs?|seconds?)"
)
_DURATION = re.compile(
    rf"{_PART}(?:,?\s?(?:and )?{_PART})*|P(?:\d+[YMWD])*(?:T(?:\d+(?:\.\d+)?[HMS])+)?",
    re.IGNORECASE,
)
# 3/4, 1 1/2
_PARTS_OF_ONE = re.compile(rf"(?P<whole>\d+[ -])?{PART_OF_ONE}")
# 46°12'30"N, 46° 12.5′, N 46.2°; 46.2N
_ANGLE = re.compile(
    r"[NSEW]?\s?[+\-\u2212]?\d{1,3}(\.\d+)?\s?°"
    r"(\s?\d{1,2}(\.\d+)?\s?['’′](\s?\d{1,2}(\.\d+)?\s?([\"”″]|''))?)?\s?[NSEW]?"
    r"|\d{1,3}\.\d+\s?[NSEW]"
)
# <0.5, >= 100: beside many numbers limits of detection, beside few numbers bands.
BOUND = re.compile(rf"(?:[<>]=?|[≤≥])\s?(?P<number>{_NUMBER})")
# May precede a date: Tuesday,
_WEEKDAY = re.compile(WEEKDAY, re.IGNORECASE)
# May follow a date: 18:57, 06:57:03 PM
_OF_THE_DAY = re.compile(r",? \d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?$")
_SPELLED_SHARE = 0.9
_FORMS = (_SPELLINGS, _MONTHS, _QUARTERS, _ANGLE)
_ANY_FORM = (*_FORMS, BOUND, _MEASURED, _DURATION, _PARTS_OF_ONE)


def misspelled(words: Sequence[str], n_plain: int) -> str:
    """One of `words` that looks like an unusually written number or date, if most do; else empty.

    words: a column's distinct texts that are not plain numbers; n_plain: number of its distinct
    plain numbers. Plain numbers and dates may be mixed in: 900 beside 1,200, 2024-05-31 beside
    31.5.2024. Beside many numbers, bounds such as <0.5 count as well.
    """
    fewest = math.ceil(_SPELLED_SHARE * (n_plain + len(words)))
    # For ordinary text, stop as soon as too many words match no form.
    most_odd = n_plain + len(words) - fewest
    odd = (word for word in words if not _looks_like_any(word))
    if len(list(islice(odd, most_odd + 1))) > most_odd:
        return ""
    words = sorted(words)
    forms = (*_FORMS, BOUND) if n_plain > MANY_LEVELS else _FORMS
    alike = [w for w in words if any(form.fullmatch(w) for form in forms) or _is_day(w)]
    ways = (_of_one_unit, _of_several_units, _of_several_parts, _of_one)
    alike = max(alike, *(way(words) for way in ways), key=len)
    dates = sum(is_date(word) for word in words) if alike and _is_day(alike[0]) else 0
    return alike[0] if alike and n_plain + dates + len(alike) >= fewest else ""


def _looks_like_any(word: str) -> bool:
    return any(form.fullmatch(word) for form in _ANY_FORM) or _is_day(word) or is_date(word)


def _of_one_unit(words: list[str]) -> list[str]:
    """The `words` that are numbers with the most frequent unit; empty if these are few."""
    most = max(_by_unit(words).values(), key=len, default=[])
    return most if len(most) >= FEWEST_OF_A_UNIT else []


def _of_several_units(words: list[str]) -> list[str]:
    """The `words` that are numbers with several units that cannot be compared (70 kg, 154 lb).

    Single letters are skipped, since they may belong to codes; comparable units such as kg and g
    are ordered elsewhere.
    """
    units = {
        unit: theirs
        for unit, theirs in _by_unit(words).items()
        if len(theirs) >= FEWEST_OF_A_UNIT and len("".join(filter(None, unit))) > 1
    }
    told = [word for theirs in units.values() for word in theirs]
    return told if len(units) > 1 and not factors(told) else []


def _by_unit(words: list[str]) -> dict[tuple, list[str]]:
    units: dict[tuple, list[str]] = {}
    for word in words:
        if (found := _MEASURED.fullmatch(word)) and (found["before"] or found["after"]):
            units.setdefault((found["before"], (found["after"] or "").strip()), []).append(word)
    return units


def _of_several_parts(words: list[str]) -> list[str]:
    """The `words` that are durations, if some have two units (1h 20m); else empty.

    Durations with one unit each are found by `_of_one_unit`, or are ordered by their units.
    """
    found = [word for word in words if _DURATION.fullmatch(word)]
    return found if any(len(re.findall(r"\d+\s?[a-z]", word.lower())) > 1 for word in found) else []


def _of_one(words: list[str]) -> list[str]:
    """The `words` that are proper fractions (3/4, 1 1/2), if their first number gives no order."""
    found = {word: parts for word in words if (parts := _PARTS_OF_ONE.fullmatch(word))}
    proper = [word for word, parts in found.items() if int(parts["above"]) < int(parts["below"])]
    of_several = len({found[word]["below"] for word in proper}) > 1
    return proper if of_several or any(found[word]["whole"] for word in proper) else []


def _is_day(word: str) -> bool:
    word = _WEEKDAY.sub("", _OF_THE_DAY.sub("", word), count=1)
    found = _DAYS.fullmatch(word)
    if not found:
        return _OTHER_DAYS.fullmatch(word) is not None
    numbers = sorted((int(found[1]), int(found[3])))
    return 1 <= numbers[0] <= 12 and numbers[1] <= 31
