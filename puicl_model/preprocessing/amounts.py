"""Whether numbers with something beside or between their digits are amounts or codes."""

import itertools
import math
import re
from collections.abc import Sequence

from puicl_model.preprocessing.magnitudes import units_of
from puicl_model.preprocessing.number_cells import (
    BLANK,
    BLANKS,
    CURRENCIES,
    MARK,
    MONEY,
    NumberCell,
    value_of,
)
from puicl_model.preprocessing.spelled_dates import MONTH

_CAPITALS = frozenset(
    {*CURRENCIES, "KB", "MB", "GB", "TB", "PB", "HP", "RPM", "KM", "KG", "CM", "MM", "ML", "MPH"}
)
_BETWEEN = re.compile(f"[,{BLANKS}]")
# One mark parts thousands, the other is decimal; or blanks do.
_BOTH = re.compile(rf"[.{BLANKS}]\d{{3}},\d")
FEWEST_OF_A_UNIT = 3
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


def units_behind(cells: Sequence[NumberCell], decimal: str, *, currency: bool) -> dict[str, float]:
    """What to multiply numbers by for what stands behind them; empty where it cannot be told.

    currency: whether one stands in front.
    """
    named = {cell.after for cell in cells} - {""}
    some_plain = any(not cell.after and value_of(cell.digits, decimal) for cell in cells)
    after = named | {""} if some_plain else named  # 0 needs no unit
    sure = currency or any(MARK.search(cell.digits) for cell in cells)
    letters = all(len(unit) == 1 and unit.isalpha() for unit in named)
    if len(named) > 1 or (named and "" in after and not named <= MONEY):
        # mHz and MHz, mg and Mg
        two = any(f"M{unit[1:]}" in named for unit in named if unit[0] == "m")
        units = {} if two else units_of(after)
        if not currency and letters and _may_be_codes(cells, decimal, named):
            return {}
        sure = sure or bool(units)
    else:
        units = dict.fromkeys(named | {""} if named <= MONEY else named, 1.0)
        if named and (named <= _ORDINALS or named <= _OF_FLATS or all(map(_A_MONTH, named))):
            return {}
    codes = {unit for unit in named - _CAPITALS if unit.isalpha() and unit.isupper()}
    return {} if any(len(unit) > 1 or not sure for unit in codes) else units


def _may_be_codes(cells: Sequence[NumberCell], decimal: str, named: set[str]) -> bool:
    """Whether the single letters behind numbers may be no units.

    Flats and classes (12, 12B, 14), where they would be thousands, millions and so on: these are
    taken for such where some have fractions (1.5K), beside plain numbers only if a hundred is among
    these, and not of metres some of which lack their unit. Sizes (5S, 5M), where they would be
    times: fewer than three capitals say nothing. And 3 m beside 10 d may be minutes or months.
    """
    if named in ({"m"}, {"t"}, {"b"}, {"d", "m"}):
        return True
    if {unit.lower() for unit in named} <= _SHORTENED:
        plain = [value_of(cell.digits, decimal) or 0.0 for cell in cells if not cell.after]
        parts = any(MARK.search(cell.digits) for cell in cells if cell.after)
        return not parts or 0 < max(plain, default=0.0) < _FEWEST_SHORTENED
    return len(named) < FEWEST_OF_A_UNIT and all(map(str.isupper, named))


def are_amounts(cells: Sequence[NumberCell], decimal: str) -> bool:
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
    if any(MARK.search(d) for d in digits) or not any(BLANK.search(d) for d in digits):
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
