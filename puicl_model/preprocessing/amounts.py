"""Decide whether numbers with units or separators are amounts, rather than codes or lists."""

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
# Separated thousands before a decimal comma: 1.234,5 or 1 234,5.
_BOTH = re.compile(rf"[.{BLANKS}]\d{{3}},\d")
FEWEST_OF_A_UNIT = 3
# These are not units. The suffix of an ordinal depends on its number, so that new rows would have
# other ones (1st, 4th). Small letters distinguish flats, classes and arms of chromosomes (10a, 7q).
_ORDINALS = frozenset(
    {"st", "nd", "rd", "th", "er", "re", "\u00e8re", "\u00e8me", "\u00ba", "\u00aa"}
)
_OF_FLATS = frozenset("abcefijnopqruvz")
_A_MONTH = re.compile(MONTH, re.IGNORECASE).fullmatch  # in 5 May, May is no unit: June may follow
# Thousands, millions, billions, trillions. Amounts below 100 are not abbreviated like this.
_SHORTENED, _FEWEST_SHORTENED = frozenset("kmbt"), 100
# From this many different numbers on, a lone comma is taken as decimal; among fewer, 1,2 may be a
# list of two answers.
_MANY = 21
# Whole numbers with blanks that all have at least this many digits may be telephone numbers.
_FEWEST_OF_A_TELEPHONE = 7
# Groups of digits in ascending order throughout (101,102) are taken as lists if amounts would have
# this order by chance with less than this probability.
_BY_CHANCE = 0.001


def units_behind(cells: Sequence[NumberCell], decimal: str, *, currency: bool) -> dict[str, float]:
    """The factor of each unit behind the numbers; empty if the units cannot be determined.

    currency: whether a currency stands in front of the numbers.
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
    """Whether single letters behind numbers may be part of codes instead of units.

    Letters for thousands, millions etc. may also denote flats and classes (12, 12B, 14). They count
    as units only if one of the numbers has a fraction (1.5K) and any plain numbers reach a hundred;
    a lone m, t or b never does (some metres may lack their unit). Letters for times may denote
    sizes (5S, 5M), so fewer than three different capitals do not count. And m beside d may be
    minutes or months.
    """
    if named in ({"m"}, {"t"}, {"b"}, {"d", "m"}):
        return True
    if {unit.lower() for unit in named} <= _SHORTENED:
        plain = [value_of(cell.digits, decimal) or 0.0 for cell in cells if not cell.after]
        parts = any(MARK.search(cell.digits) for cell in cells if cell.after)
        return not parts or 0 < max(plain, default=0.0) < _FEWEST_SHORTENED
    return len(named) < FEWEST_OF_A_UNIT and all(map(str.isupper, named))


def are_amounts(cells: Sequence[NumberCell], decimal: str) -> bool:
    """Whether numbers without unit or currency are amounts rather than codes or answers.

    Not amounts: possible telephone numbers, which have blanks and all equally many digits (555 123
    and 555 456) or seven digits or more; possible multiple answers (1,2 and 1,3); and addresses
    (192.168.101.100).
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
    """Whether marks may separate the items of lists, as in 1,2 and 3,4 or in 101,102,105.

    The items must ascend throughout (2,2 may be two dice) and be small numbers or have three digits
    each, as thousands do. A pair such as 1,10 and 1,1 also indicates lists.
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
