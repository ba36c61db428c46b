"""Read numbers with separators, currencies, percent signs and units: $1,234.50, 1.234,5 kg."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from puicl_model.preprocessing.amounts import FEWEST_OF_A_UNIT, are_amounts, units_behind
from puicl_model.preprocessing.number_cells import MONEY, taken_apart, value_of
from puicl_model.preprocessing.spelling import Spelling, reads_all


@dataclass(frozen=True)
class NumberSpelling(Spelling):
    """Numbers with one decimal mark, one currency in front and one kind of units after them.

    decimal: "." or ","; points: whether points separate thousands, so that floats are rejected,
    since a reader may have parsed 1.234 as one; before: the currency that may stand in front;
    units: the factor of each unit, with key "" if there may be none; marked: whether each number of
    the fit had a point before three digits, taken as decimal. A number without a point, such as
    999, would refute this, so it is rejected.
    """

    kind: ClassVar[str] = "number"

    decimal: str
    points: bool
    before: str
    units: dict[str, float]
    marked: bool = False

    def of_text(self, cell):
        """See `Spelling`."""
        apart = taken_apart(cell)
        value = None if apart is None else value_of(apart.digits, self.decimal)
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
        # Readers never return an integer for text with a point; a float may have been 1.000.
        if self.points and not isinstance(cell, Integral):
            return None
        if value == 0:
            return 0.0
        if self.marked or not math.isfinite(value) or "" not in self.units:
            return None
        # A reader may have parsed 1.234 as a decimal number in a batch without commas.
        return None if self.decimal == "," and _has_three_decimals(value) else value


def number_spelling(
    texts: Sequence[str], others: Sequence[Any], decimal: str | None = None
) -> NumberSpelling | None:
    """The notation in which all cells are numbers; None if there is none or it is ambiguous.

    texts: the distinct texts; others: cells that are not text; decimal: the decimal mark, if known.
    """
    cells = []
    for text in texts:
        if (cell := taken_apart(text)) is None:
            return None
        cells.append(cell)
    befores = {cell.before for cell in cells if cell.before}
    money = bool(befores) or any(cell.after in MONEY for cell in cells)
    # Files are read in batches, so 1234 may be a number in one and text in another.
    digits = [*(cell.digits for cell in cells), *_wholes(others)]
    if decimal is None:
        decimal = _decimal_mark(digits, money=money)
    elif any(value_of(cell.digits, decimal) is None for cell in cells):
        decimal = None
    if decimal is None or len(befores) > 1 or all(cell.in_brackets for cell in cells):
        return None
    before = next(iter(befores), "")
    units = units_behind(cells, decimal, currency=bool(before))
    if not units or (_is_word(units) and len(texts) < FEWEST_OF_A_UNIT):
        return None
    if not before and set(units) == {""} and not are_amounts(cells, decimal):
        return None
    points = decimal == "," and any("." in cell.digits for cell in cells)
    example = max(texts, key=len)
    marked = decimal == "." and all("." in d and value_of(d, ",") for d in digits)
    spelling = NumberSpelling(example, decimal, points, before, units, marked)
    # The texts have been checked above.
    return spelling if reads_all(spelling, [], others) else None


def _wholes(cells: Iterable[Any]) -> list[str]:
    """Digits of those `cells` that are whole numbers."""
    reals = (float(cell) for cell in cells if isinstance(cell, Real) and not isinstance(cell, bool))
    return [f"{abs(real):.0f}" for real in reals if real.is_integer()]


def _has_three_decimals(value: float) -> bool:
    thousands = abs(value) * 1000
    return (
        1000 <= thousands < 1e6
        and math.isclose(thousands, round(thousands))
        and (round(thousands) % 10 > 0)
    )


def _decimal_mark(digits: Sequence[str], *, money: bool) -> str | None:
    """The decimal mark with which all `digits` are numbers; None if none or both are possible."""
    possible = [mark for mark in ".," if all(value_of(d, mark) is not None for d in digits)]
    if len(possible) < 2:
        return possible[0] if possible else None
    if all(value_of(d, ".") == value_of(d, ",") for d in digits):
        return "."
    # Three digits after each mark, as in 1,234 and 12,500. Beside 999 the marks separate thousands.
    # If every number has a mark, a wrong choice only changes the unit, by a factor of 1,000.
    mark = "," if any("," in d for d in digits) else "."
    if all(mark in d for d in digits):
        return "."
    if any((value_of(d, ".") or 0) >= 1000 for d in digits if mark not in d):
        return None
    if mark == ".":  # thousands only for money: 1.250 kg beside 2 kg is more than one kilogram
        return "," if money else None
    return "."


def _is_word(units: Iterable[str]) -> bool:
    return any(unit[:1].isalpha() for unit in units)
