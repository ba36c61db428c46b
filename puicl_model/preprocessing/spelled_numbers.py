"""Numbers with separators, currencies, percent signs and units: $1,234.50, 1.234,5 kg, 10 %."""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from puicl_model.preprocessing.magnitudes import units_of
from puicl_model.preprocessing.spelled_dates import MONTH
from puicl_model.preprocessing.spelling import Spelling, reads_all

# Hyphens and dashes that are no ASCII, too; ASCII's stands last, as a class of characters has it.
_MINUS = "\u2010\u2011\u2012\u2013\u2212-"
# Blanks and apostrophes part thousands wherever they stand; \u2019 is a typographer's.
_BLANKS = "'\u2019 \u00a0\u2009\u202f"
_SYMBOL = "[$€£¥₹₩₽₺₫₪฿₴₦]"
_CURRENCIES = re.findall(
    r"\w+",
    "USD EUR GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON TRY BRL MXN ZAR KRW SGD",
)
_BEFORE = rf"(?:[A-Z]{{1,3}})?{_SYMBOL}|{'|'.join(_CURRENCIES)}|R\$|Rs\.?"
# kg, mg/dl, cm², years old; no capitals but those of a few: 10A and 11AB are flats.
_WORD = r"[^\W\d_]{1,12}[²³]?"
_AFTER = (
    rf"[%‰]|°\s?[^\W\d_]?|{_SYMBOL}(?:\s?/\s?{_WORD})?"
    rf"|{_WORD}\.?(?:\s?/\s?{_WORD}|\s{_WORD}|\s?{_SYMBOL})?"
)
_CAPITALS = frozenset(
    {*_CURRENCIES, "KB", "MB", "GB", "TB", "PB", "HP", "RPM", "KM", "KG", "CM", "MM", "ML", "MPH"}
)
_MONEY = frozenset({*_CURRENCIES, *"$€£¥₹₩₽₺₫₪฿₴₦"})
_CELL = re.compile(
    rf"(?P<open>\()?(?P<sign>[+{_MINUS}])?\s?"
    rf"(?:(?P<before>{_BEFORE})\s?(?P<inner>[{_MINUS}])?(?P<inside>\()?)?"
    rf"(?P<digits>(?:\d[\d.,{_BLANKS}]*)?\d(?:[eE][+-]?\d+)?|[.,]\d+)"
    rf"\s?(?P<after>{_AFTER})?(?P<close>\))?(?P<behind>[{_MINUS}])?"
)
# By the decimal mark, groups of three, of two and three as in India, or none; no group begins
# with 0.
_POINT = re.compile(
    rf"(?:[1-9]\d{{0,2}}(?:(?:,\d{{2,3}})*,\d{{3}}|(?:[{_BLANKS}]\d{{3}})+)|\d*)(?:\.\d+)?"
    r"(?:[eE][+-]?\d+)?"
)
_COMMA = re.compile(
    rf"(?:[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|(?:[{_BLANKS}]\d{{3}})+)|\d*)(?:,\d+)?(?:[eE][+-]?\d+)?"
)
_PARTING = {".": re.compile(rf"[,{_BLANKS}]"), ",": re.compile(rf"[.{_BLANKS}]")}
_MARK = re.compile("[.,]")
_BLANK = re.compile(f"[{_BLANKS}]")
_BETWEEN = re.compile(f"[,{_BLANKS}]")
# One mark parts thousands, the other is decimal; or blanks do.
_BOTH = re.compile(rf"[.{_BLANKS}]\d{{3}},\d")
_FEWEST_OF_A_UNIT = 3
# No units: of the first, each number has its own, so that new rows would have others (1st beside
# 4th); small letters by which flats, classes and arms of chromosomes are told apart (10a, 7q).
_ORDINALS = frozenset(
    {"st", "nd", "rd", "th", "er", "re", "\u00e8re", "\u00e8me", "\u00ba", "\u00aa"}
)
_OF_FLATS = frozenset("abcefijnopqruvz")
_A_MONTH = re.compile(MONTH, re.IGNORECASE).fullmatch  # 5 May would be another's 1 June
# Of amounts: thousands, millions, billions, trillions. Numbers below 100 need none of these.
_SHORTENED, _FEWEST_SHORTENED = frozenset("kmbt"), 100
# From so many different numbers on, a comma alone is taken for a decimal one: 1,2 may be two
# answers of a few.
_MANY = 21
# Wholes parted by blanks, all of which have so many digits, may be telephone numbers.
_FEWEST_OF_A_TELEPHONE = 7
# Less often than this, what stands behind the thousands of amounts is more than these throughout.
_BY_CHANCE = 0.001


class _Cell(NamedTuple):
    """A text taken apart; sign: 1 or -1."""

    sign: int
    before: str
    digits: str
    after: str
    in_brackets: bool


@dataclass(frozen=True)
class NumberSpelling(Spelling):
    """Numbers of one decimal mark, one currency in front and one kind of units behind.

    decimal: "." or ","; points: whether these part thousands, so that what a reader has made of
    1.234 is no number here; before: what may stand in front; units: what numbers are multiplied by
    for what stands behind them, "" among it where that may be nothing; marked: whether each had a
    point before three digits, taken for a decimal one, which 999 beside them would make another.
    """

    kind: ClassVar[str] = "number"

    decimal: str
    points: bool
    before: str
    units: dict[str, float]
    marked: bool = False

    def of_text(self, cell):
        """See `Spelling`."""
        apart = _apart(cell)
        value = None if apart is None else _value(apart.digits, self.decimal)
        if apart is None or value is None or apart.before not in ("", self.before):
            return None
        if value == 0 and not apart.after:
            return 0.0
        if self.marked and "." not in apart.digits:
            return None
        times = self.units.get(apart.after)
        if times is None and value == 1 and apart.after:  # 1 star beside stars
            times = self.units.get(f"{apart.after}s")
        return None if times is None else apart.sign * value * times

    def of_other(self, cell):
        """See `Spelling`."""
        try:
            value = math.nan if isinstance(cell, bool | np.bool_) else float(cell)
        except (TypeError, ValueError, OverflowError):
            return None
        # A reader makes 1.0 of 1.000, too, but no whole number of anything with a point.
        if self.points and not isinstance(cell, Integral):
            return None
        if value == 0:
            return 0.0
        if self.marked or not math.isfinite(value) or "" not in self.units:
            return None
        # 1.234 is what a reader makes of a batch that says no more, too.
        return None if self.decimal == "," and _has_three_decimals(value) else value


def number_spelling(texts: Sequence[str], others: Sequence[Any]) -> NumberSpelling | None:
    """How all cells say numbers; None where not all do, or where more than one way is likely.

    texts: the different ones; others: cells that are no text.
    """
    cells = []
    for text in texts:
        if (cell := _apart(text)) is None:
            return None
        cells.append(cell)
    befores = {cell.before for cell in cells if cell.before}
    money = bool(befores) or any(cell.after in _MONEY for cell in cells)
    # Files are read by the batch: 1234 is a number here and a text there.
    digits = [*(cell.digits for cell in cells), *_wholes(others)]
    decimal = _decimal_mark(digits, money=money)
    if decimal is None or len(befores) > 1 or all(cell.in_brackets for cell in cells):
        return None
    before = next(iter(befores), "")
    units = _units(cells, decimal, currency=bool(before))
    if not units or (_is_word(units) and len(texts) < _FEWEST_OF_A_UNIT):
        return None
    if not before and set(units) == {""} and not _are_amounts(cells, decimal):
        return None
    points = decimal == "," and any("." in cell.digits for cell in cells)
    example = max(texts, key=len)
    marked = decimal == "." and all("." in d and _value(d, ",") for d in digits)
    spelling = NumberSpelling(example, decimal, points, before, units, marked)
    # The texts have just been read.
    return spelling if reads_all(spelling, [], others) else None


def _wholes(cells: Iterable[Any]) -> list[str]:
    """The digits of those that are whole numbers."""
    reals = (float(cell) for cell in cells if isinstance(cell, Real) and not isinstance(cell, bool))
    return [f"{abs(real):.0f}" for real in reals if real.is_integer()]


def _has_three_decimals(value: float) -> bool:
    thousands = abs(value) * 1000
    return (
        1000 <= thousands < 1e6
        and math.isclose(thousands, round(thousands))
        and (round(thousands) % 10 > 0)
    )


def _apart(cell: str) -> _Cell | None:
    found = _CELL.fullmatch(cell)
    if not found:
        return None
    signs = [found["sign"], found["inner"], found["behind"]]
    in_brackets = bool(found["open"] or found["inside"])
    # 5- and (5) may be a grade and the number of a list.
    amount = found["before"] or _MARK.search(found["digits"])
    if found["open"] and found["inside"]:
        return None
    if in_brackets != bool(found["close"]) or sum(map(bool, signs)) + in_brackets > 1:
        return None
    if (in_brackets or found["behind"]) and not amount:
        return None
    if found["sign"] == "+" and _BLANK.search(found["digits"]):  # +49 170 123 456 is a telephone's
        return None
    minus = in_brackets or any(sign and sign in _MINUS for sign in signs)
    after = re.sub(r"\s", "", found["after"] or "").removesuffix(".")
    if any(sign.isnumeric() for sign in re.sub("(?<=.)[²³]", "", after)):  # 5½, 10²
        return None
    return _Cell(-1 if minus else 1, found["before"] or "", found["digits"], after, in_brackets)


def _value(digits: str, decimal: str) -> float | None:
    """The number that `digits` are with that `decimal` mark; None where they are none."""
    if not (_POINT if decimal == "." else _COMMA).fullmatch(digits):
        return None
    return float(_PARTING[decimal].sub("", digits).replace(",", "."))


def _decimal_mark(digits: Sequence[str], *, money: bool) -> str | None:
    """The mark with which all `digits` are numbers; None where there is none, or either may be."""
    by_point, by_comma = ([_value(d, mark) for d in digits] for mark in ".,")
    if None in by_point:
        return None if None in by_comma else ","
    if None in by_comma or by_point == by_comma:
        return "."
    # 1,234 and 12,500: three digits behind each mark. Beside 999 they are thousands, and where
    # each number has a mark, these are a thousand times as many as decimals at most.
    mark = "," if any("," in d for d in digits) else "."
    if all(mark in d for d in digits):
        return "."
    if any((_value(d, ".") or 0) >= 1000 for d in digits if mark not in d):
        return None
    if mark == ".":  # of amounts of money alone: 1.250 kg beside 2 kg is more than one
        return "," if money else None
    return "."


def _units(cells: Sequence[_Cell], decimal: str, *, currency: bool) -> dict[str, float]:
    """What to multiply numbers by for what stands behind them; empty where it cannot be told.

    currency: whether one stands in front.
    """
    after = {cell.after for cell in cells if cell.after or _value(cell.digits, decimal)}
    named = after - {""}
    sure = currency or any(_MARK.search(cell.digits) for cell in cells)
    letters = all(len(unit) == 1 and unit.isalpha() for unit in named)
    if len(named) > 1 or (named and "" in after and not named <= _MONEY):
        # mHz and MHz, mg and Mg
        two = any(f"M{unit[1:]}" in named for unit in named if unit[0] == "m")
        units = {} if two else units_of(after)
        if not currency and letters and _may_be_codes(cells, decimal, named):
            return {}
        sure = sure or bool(units)
    else:
        units = dict.fromkeys(named | {""} if named <= _MONEY else named, 1.0)
        if named and (named <= _ORDINALS or named <= _OF_FLATS or all(map(_A_MONTH, named))):
            return {}
    codes = {unit for unit in named - _CAPITALS if unit.isalpha() and unit.isupper()}
    return {} if any(len(unit) > 1 or not sure for unit in codes) else units


def _may_be_codes(cells: Sequence[_Cell], decimal: str, named: set[str]) -> bool:
    """Whether the single letters behind numbers may be no units.

    Flats and classes (12, 12B, 14), where they would be thousands, millions and so on: these are
    taken for such where some have fractions (1.5K), beside plain numbers only if a hundred is among
    these, and not of metres some of which lack their unit. Sizes (5S, 5M), where they would be
    times: fewer than three capitals say nothing. And 3 m beside 10 d may be minutes or months.
    """
    if named in ({"m"}, {"t"}, {"b"}, {"d", "m"}):
        return True
    if {unit.lower() for unit in named} <= _SHORTENED:
        plain = [_value(cell.digits, decimal) or 0.0 for cell in cells if not cell.after]
        parts = any(_MARK.search(cell.digits) for cell in cells if cell.after)
        return not parts or 0 < max(plain, default=0.0) < _FEWEST_SHORTENED
    return len(named) < _FEWEST_OF_A_UNIT and all(map(str.isupper, named))


def _is_word(units: Iterable[str]) -> bool:
    return any(unit[:1].isalpha() for unit in units)


def _are_amounts(cells: Sequence[_Cell], decimal: str) -> bool:
    """Whether numbers that nothing stands beside are amounts rather than codes or answers.

    555 123 and 555 456 may be telephone numbers, as are all of seven digits or more; 1,2 and 1,3
    answers of which several count; 192.168.101.100 is an address.
    """
    digits = [cell.digits for cell in cells]
    if decimal == "," and any(_BOTH.search(d) for d in digits):
        return True
    if _may_be_lists(digits) or all(map(_is_address, digits)):
        return False
    if decimal == ",":
        return len(digits) >= _MANY
    if any(_MARK.search(d) for d in digits) or not any(_BLANK.search(d) for d in digits):
        return True
    counts = {sum(map(str.isdigit, d)) for d in digits}
    return len(counts) > 1 and min(counts) < _FEWEST_OF_A_TELEPHONE


def _may_be_lists(digits: Sequence[str]) -> bool:
    """Whether marks may stand between answers, codes or places: 1,2 and 3,4; 101,102,105.

    In ascending order throughout (2,2 may be two dice), of small numbers or of as many digits as
    thousands have; or with 1,10 beside 1,1.
    """
    lists = [_BETWEEN.split(d) for d in digits]
    several = [each for each in lists if len(each) > 1]
    if not several or not all(part.isdigit() for each in lists for part in each):
        return False
    lengths = {len(each[-1]) for each in several}
    if len(lengths) > 1 and any(re.fullmatch(r"\d+0", each[-1]) for each in several):
        return True
    for each in several:
        numbers = [int(part) for part in each]
        if each[0] == "0" or any(part[0] == "0" for part in each[1:]):
            return False
        if any(low > high for low, high in itertools.pairwise(numbers)):
            return False
    if max(int(part) for each in lists for part in each) < _MANY:
        return True
    by_chance = math.prod(1 - int(each[0]) / 1000 for each in several)
    told = by_chance < _BY_CHANCE or any(len(each) > 2 for each in several)
    return told and all(len(each[0]) == 3 for each in lists)


def _is_address(digits: str) -> bool:
    parts = digits.split(".")
    return len(parts) == 4 and all(part.isdigit() and int(part) < 256 for part in parts)
