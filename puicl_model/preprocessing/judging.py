"""What a column holds, judged by its cells: numbers, slips among them, names, row numbers."""

import re

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import are_times, as_numbers, huge_offset, is_date, no_dates
from puicl_model.preprocessing.magnitudes import factors
from puicl_model.preprocessing.spelled_dates import MONTH

# 999, -99: what stands for nothing among numbers, where so many others are there and it repeats.
_NINES = re.compile("-9+|99+")
_FEW_OTHERS, _REPEATS, _NOTHING_SHARE = 10, 3, 0.02
# Whole numbers of three digits beside those whose points may part thousands.
_WHOLE_SHARE = 0.05
# A text column of more levels than this share of its rows names rows rather than groups.
NAMES_SHARE = 0.5
MIN_ROWS_TO_JUDGE = 20
# Text in less than this share of a column of numbers, of more than so many, is a slip.
_SLIPS_SHARE = 0.2
_MANY_LEVELS = 20
# So is a word or two in up to half of one: "-" or "unknown" where nothing was measured.
_MARKS_SHARE, _MARKS = 0.5, 2
# But V57, E819.2 and K35 among numbers are codes of one list, and so is 0042T beside three such;
# by itself, 180H may be a number that a laboratory has marked as high.
_CODE = re.compile(r"(?P<first>[A-Z]{1,2})?\d[\d.]*[A-Z]?")
_LEAST_CODES = 3
# What pandas and Parquet call an index that was saved with the rows.
_INDEX = re.compile(r"|Unnamed: \d+(\.\d+)*|level_\d+|__index_level_\d+__|index", re.IGNORECASE)
# Names of columns of identifiers: id, patient_id, "Case No", customerNr, mrn.
_IDENTIFIER = re.compile(
    r"(?i:(.*[\W_])?(id|ids|mrn|ssn|key|nr|no|num|number))|.*[a-z](Id|ID|Nr|No|Key)"
)
# What stands for a minus: hyphens and dashes that are no ASCII; and what money is written with.
_DASH = "\u2010-\u2013\u2212"
_MONEY = r"(?:[A-Z]{0,2}[$€£¥₹₩₽₺₫₪฿₴₦]|Rs\.?)"
# 10 %, $5, -$5; 1.234, 1'234,50, 1 234; 7,5; (5), 5- and 5 DR; with a typographer's minus, −5;
# $1.2M; 1,5e3, 1.5 x 10^3.
_NUMBER = rf"[+\-{_DASH}]?\d[\d.,'’\u00a0\u202f]*"
_SPELLINGS = re.compile(
    rf"[+\-{_DASH}]?{_MONEY}\s?{_NUMBER}\s?[kKmMbB]?|{_NUMBER}\s?(?:[%‰％]|{_MONEY})"
    rf"|{_MONEY}?\s?\({_MONEY}?\s?{_NUMBER}\)|[{_DASH}]{_NUMBER}|{_NUMBER}\s?(?:[\-{_DASH}]|[CD][Rr])"
    r"|[+-]?\d{1,3}([.,'’\u00a0\u202f ])\d{3}(\1\d{3})*([.,]\d+)?|[+-]?\d+,\d+([eE][+-]?\d+)?"
    rf"|{_NUMBER}\s?[x×·]\s?10\^[+\-{_DASH}]?\d+"
)
# 18 kg, 1.5h, USD 1 200, 5 mg/dl, 20 °C; so many of one unit. 10A and 11A are flats.
_MEASURED = re.compile(
    rf"(?P<before>[A-Z]{{3}}\s)?{_NUMBER}( \d{{3}})*"
    r"(?P<after>(?![A-Z]$)\s?°?[^\W\d_]{1,12}[²³]?(/[^\W\d_]{1,12})?)?"
)
_LEAST_OF_A_UNIT = 3
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
_YEAR, _OF_A_YEAR = r"(?:1[5-9]|20)\d\d", "(?:0?[1-9]|1[0-2])"
_MONTHS = re.compile(
    rf"{_YEAR}[-/]{_OF_A_YEAR}|{_OF_A_YEAR}[-/.]{_YEAR}|{MONTH}[ -](?:{_YEAR}|\d\d)"
    rf"|{_YEAR}[ -]{MONTH}",
    re.IGNORECASE,
)
# What would stand by its quarter, half or week before its year: Q3 2024, 3Q24, H1/2024, W05-2024
_QUARTERS = re.compile(
    rf"(?:Q[1-4]|H[12])(?:[ /'’-]?{_YEAR}|[ /'’-]\d\d)|(?:[1-4]Q|[12]H)[ '’]?(?:{_YEAR}|\d\d)"
    rf"|(?:[CK]?W|[Ww][Kk]|[Ww]eek) ?\d{{1,2}}(?:[ /-]|, ){_YEAR}"
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
_PARTS_OF_ONE = re.compile(r"(?P<whole>\d+[ -])?(?P<above>\d{1,2})/(?P<below>2|3|4|8|16|32|64)")
# 46°12'30"N, 46° 12.5′, N 46.2°; 46.2N
_ANGLE = re.compile(
    r"[NSEW]?\s?[+\-\u2212]?\d{1,3}(\.\d+)?\s?°"
    r"(\s?\d{1,2}(\.\d+)?\s?['’′](\s?\d{1,2}(\.\d+)?\s?([\"”″]|''))?)?\s?[NSEW]?"
    r"|\d{1,3}\.\d+\s?[NSEW]"
)
# <0.5, >= 100: beside many numbers what a laboratory measured no further, beside few a band.
_BOUND = re.compile(rf"(?:[<>]=?|[≤≥])\s?(?P<number>{_NUMBER})")
# Before any of these: Tuesday,
_WEEKDAY = re.compile(
    r"(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\.?,? ", re.IGNORECASE
)
# Behind any of these: 18:57, 06:57:03 PM
_OF_THE_DAY = re.compile(r",? \d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp]\.?[Mm]\.?)?$")
_SPELLED_SHARE = 0.9


def reads_as_numbers(column: pd.Series, missing: np.ndarray) -> bool:
    """Whether every cell that is there is a number, text that is one, or a time or duration.

    Raises `ValueError` for infinite numbers.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    if are_times(column, missing):
        return True
    known = column[~missing]
    numbers = pd.to_numeric(known, errors="coerce")
    if numbers.dtype.kind not in "biuf" or numbers.isna().any():
        return False
    as_numbers(column)  # tells infinite cells
    return True


def misspelled(words: np.ndarray) -> str:
    """One of `words` that looks like a number or date and is not written as one, if most do.

    Plain numbers and dates may stand among them: 900 beside 1,200, 2024-05-31 beside 31.5.2024;
    beside many numbers bounds are looked for, too. Empty where there is none, or few do.
    """
    distinct = [str(word) for word in np.unique(words)]
    plain = pd.to_numeric(pd.Series(distinct, dtype=object), errors="coerce").notna()
    other = [word for word, is_plain in zip(distinct, plain, strict=True) if not is_plain]
    forms = (
        _SPELLINGS,
        _MONTHS,
        _QUARTERS,
        _ANGLE,
        *((_BOUND,) if plain.sum() > _MANY_LEVELS else ()),
    )
    alike = [w for w in other if any(form.fullmatch(w) for form in forms) or _is_day(w)]
    ways = (_of_one_unit, _of_several_units, _of_several_parts, _of_one)
    alike = max(alike, *(way(other) for way in ways), key=len)
    dates = sum(is_date(word) for word in other) if alike and _is_day(alike[0]) else 0
    many = plain.sum() + dates + len(alike) >= _SPELLED_SHARE * len(distinct)
    return alike[0] if alike and many else ""


def mostly_numbers(words: np.ndarray) -> bool:
    """Whether half of `words` or more are plain numbers."""
    return bool(pd.to_numeric(pd.Series(words), errors="coerce").notna().mean() >= NAMES_SHARE)


def _of_one_unit(words: list[str]) -> list[str]:
    """Those that are numbers with the unit that most have; none where these are few."""
    most = max(_by_unit(words).values(), key=len, default=[])
    return most if len(most) >= _LEAST_OF_A_UNIT else []


def _of_several_units(words: list[str]) -> list[str]:
    """Those that are numbers with one of several units that cannot be compared (70 kg, 154 lb).

    A letter behind a number may be another code's, and kg and g have their order.
    """
    units = {
        unit: theirs
        for unit, theirs in _by_unit(words).items()
        if len(theirs) >= _LEAST_OF_A_UNIT and len("".join(filter(None, unit))) > 1
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
    """Those that are durations, where some have two units (1h 20m); else none.

    Of one unit each they are `_of_one_unit`, or stand in their order.
    """
    found = [word for word in words if _DURATION.fullmatch(word)]
    return found if any(len(re.findall(r"\d+\s?[a-z]", word.lower())) > 1 for word in found) else []


def _of_one(words: list[str]) -> list[str]:
    """Those that are fractions (3/4, 1 1/2), where their first number does not order them."""
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


def _is_a_mark(known: pd.Series, bad: np.ndarray) -> bool:
    """Whether all `bad` cells are one or two words for nothing, beside more of many numbers."""
    if not 0 < bad.mean() < _MARKS_SHARE:
        return False
    return known[bad].nunique() <= _MARKS and known[~bad].nunique() > _MANY_LEVELS


def _are_codes(words: pd.Series) -> bool:
    """Whether all `words` are codes, at least three different ones with a letter first."""
    found = [_CODE.fullmatch(str(word).strip()) for word in words.unique()]
    return all(found) and sum(code["first"] is not None for code in found if code) >= _LEAST_CODES


def refuse_slips(name: str, column: pd.Series, missing: np.ndarray, distinct: int) -> str:
    """Raise `ValueError` for a column of many different numbers, or dates, with slips in it.

    Returns one of the words among numbers that repeat where all words are codes, else nothing.
    """
    many = distinct > _MANY_LEVELS or distinct > NAMES_SHARE * (~missing).sum()
    if isinstance(column.dtype, pd.CategoricalDtype) or not many:
        return ""
    known = column[~missing]
    for bad, kind in (
        (pd.to_numeric(known, errors="coerce").isna().to_numpy(), "number"),
        (no_dates(known), "date"),
    ):
        few = bad.mean() < _SLIPS_SHARE
        if (few and bad.any()) or _is_a_mark(known, bad):
            row = int(known.index[np.flatnonzero(bad)[0]])
            # Codes of one list occur again and again; what does not is measured. No date is a code.
            groups = distinct <= NAMES_SHARE * len(known)
            if kind == "number" and groups and _are_codes(known[bad]):
                return str(column[row])
            others = "nearly all others" if few else "most others"
            bound = _BOUND.fullmatch(str(column[row]).strip())
            mend = "mend or empty the cell"
            if bound and kind == "number":
                mend = f"write bounds as numbers ({bound['number']}, or half of it)"
            raise ValueError(
                f"column {name}: row {row} holds {column[row]!r}, not a {kind}, as {others} are; "
                f"{mend}, or name the column in categorical_features"
            )
    return ""


def may_identify(name: str, column: pd.Series, missing: np.ndarray) -> bool:
    """Whether a column of numbers may name rows: whole, all distinct, and called or written so.

    Written so: as text, with zeros in front.
    """
    known = column[~missing]
    if column.dtype.kind in "bm" or len(known) < MIN_ROWS_TO_JUDGE:
        return False
    is_text = column.dtype.kind == "O"
    padded = is_text and any(isinstance(c, str) and re.fullmatch(r"0\d+", c) for c in known)
    if not (padded or _IDENTIFIER.fullmatch(name)):
        return False
    values = as_numbers(known, huge_offset(known))
    return len(np.unique(values)) == len(values) and np.array_equal(values, np.round(values))


def stands_for_nothing(values: np.ndarray, of_days: bool = False) -> float | None:
    """The least or greatest of `values` [n], without NaN, where it may mean that nothing is known.

    Nines (999, -99) that repeat, farther from the others than these from each other or, below 0,
    where no other is. of_days: any day that stands apart like that (9999-12-31).
    """
    distinct, counts = np.unique(values, return_counts=True)
    if len(values) < MIN_ROWS_TO_JUDGE or len(distinct) <= _FEW_OTHERS:
        return None
    for value, count, others in (
        (distinct[0], counts[0], distinct[1:]),
        (distinct[-1], counts[-1], distinct[:-1]),
    ):
        with np.errstate(over="ignore"):  # infinity is no farther than infinity
            apart = np.abs(others - value).min() > others[-1] - others[0]
        below = not of_days and value < 0 <= others[0]
        written = of_days or _NINES.fullmatch(f"{value:.0f}" if value % 1 == 0 else "")
        many = count >= max(_REPEATS, _NOTHING_SHARE * len(values))
        if written and many and (apart or below):
            return float(value)
    return None


def parted_by_points(values: np.ndarray) -> float | None:
    """One of `values` [n], without NaN, where their points may part thousands (999, 1.234).

    Then whole numbers end before 1,000 and fractions lie between 1 and 1,000 and have three digits;
    of numbers measured to three digits one in a thousand is whole.
    """
    sizes = np.abs(values)
    if len(sizes) < MIN_ROWS_TO_JUDGE or sizes.max() >= 1000:
        return None
    whole = sizes == np.round(sizes)
    parted = sizes[~whole] * 1000
    if (whole & (sizes >= 100)).mean() < _WHOLE_SHARE or not len(parted):
        return None
    of_three = np.abs(parted - np.round(parted)) < 1e-6
    fewer_do = np.round(parted) % 10 == 0
    if parted.min() < 1000 or not of_three.all() or fewer_do.mean() > NAMES_SHARE:
        return None
    return float(values[~whole][~fewer_do][0])


def digits_of_a_day(values: np.ndarray) -> float | None:
    """One of `values` [n], without NaN, where all are days: 20240531, 31052024 or 5312024."""
    distinct = np.unique(values)
    least, most = distinct[0], distinct[-1]
    if len(distinct) <= _FEW_OTHERS or least < 1_011_800 or most > 31_122_100:
        return None
    if not np.array_equal(distinct, np.round(distinct)):
        return None
    days = distinct.astype(np.int64)
    rest, low = np.divmod(days, 100)
    first, second = np.divmod(days // 10_000, 100)
    by_year = (rest // 100, rest % 100, low)
    year = days % 10_000
    for years, months, of_month in (by_year, (year, second, first), (year, first, second)):
        written = (years >= 1800) & (years <= 2100) & (months >= 1) & (months <= 12)
        if (written & (of_month >= 1) & (of_month <= 31)).all():
            return float(least)
    return None


def is_row_number(name: str, column: pd.Series, missing: np.ndarray) -> bool:
    """Whole numbers, all distinct, that fill their range: an index that was saved with the rows.

    In whatever form they come: as text and, in an array beside fractions, as floats; a few of them
    may be missing. Where the column has no name or that of an index, there may be gaps, as rows
    drawn from a larger table leave them.
    """
    known = column[~missing]
    if column.dtype.kind in "bm" or len(known) < MIN_ROWS_TO_JUDGE:
        return False
    if missing.mean() >= _SLIPS_SHARE:
        return False
    values = as_numbers(known, huge_offset(known))
    whole = np.array_equal(values, np.round(values))
    filled = values.max() <= values.min() + len(column) - 1  # without overflow
    filled |= _INDEX.fullmatch(name) is not None
    return whole and filled and len(np.unique(values)) == len(values)
