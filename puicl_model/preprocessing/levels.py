"""Determine the order in which a category's levels are coded."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import word
from puicl_model.preprocessing.magnitudes import ABOVE, BELOW, OPEN_END, factors
from puicl_model.preprocessing.scales import TRACE, ZERO, bare, n_shared, no_answer, ranks

# 5, 0.5, 1,000
_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?"
_SPLIT = re.compile(f"({_NUMBER})")
_DIGIT = re.compile(r"\d")
# A band up to its first number, which may be .5 or 1e+06: "<5", "Under $5", "[5". Blanks match only
# after the preceding sign: otherwise runs of blanks would match in many ways, in quadratic time.
_BAND = re.compile(
    rf"(?:(?:between|from)\s)?(?:(?P<below>{'|'.join(BELOW)})|(?P<above>{'|'.join(ABOVE)}))?=?"
    rf"\s*(?:[\[(]\s*)?(?:[$€£]\s*)?(?P<number>[+-]?(?:{_NUMBER}|\.\d+)(?:e[+-]\d+)?)",
    re.IGNORECASE,
)
# What follows the first number of a band: another number or a sign such as +.
_ENDS = re.compile(
    rf"\s*[$€£%]?\s*(?:(?:-|–|—|to|and)\s*[$€£]?{_NUMBER}|{OPEN_END})", re.IGNORECASE
)
# low (0-5), high [130+], Medium: 5-10
_EXPLAINED = re.compile(
    r"\D*?(?:\((?P<round>[^()]+)\)|\[(?P<square>[^\[\]]+)\]|: ?(?P<rest>[^:]+))"
)
# Intervals as pandas and R write them: (-inf, 0.5], (50,100], (500,1e+03]. The comma separates the
# ends, not thousands.
_INTERVAL = re.compile(r"[\[(]([^,]+),([^,]+)[\])]")


def in_order(levels: Iterable[str], column: pd.Series) -> list[str]:
    """Sort `levels` in the order of `column`'s ordered categorical, else by their meaning.

    Words of one scale (`never`, `sometimes`, `often`) follow the scale (`scales.ranks`). Otherwise
    numbers and levels that begin with one (`5-9`, `10+`, `<5`, `under 1,000`, `(-inf, 0.5]`) come
    first, by the number times its unit (`512 MB`, `1 GB`; `magnitudes.factors`); beside two or more
    of these, `none` and the like count as 0. Words follow alphabetically, with numbers in them
    compared by value (week 2, week 10). If all levels have the same length, like padded codes,
    those that are not numbers are sorted alphabetically, unless they are bands (`4-6`, `10+`).
    """
    order: dict[str, int] = {}
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        order = {word(level): code for code, level in enumerate(column.dtype.categories)}
    levels = list(levels)
    order = order or ranks(levels)
    text = _what_is_said(levels)
    texts = list(text.values())
    padded = len({len(each) for each in texts}) == 1 and not _are_bands(texts)
    times = factors(each for each in texts if not _says_no_number(each))
    said = {
        level: _by_alphabet(each) if padded else _by_numbers(each, times.get(each, 1.0))
        for level, each in text.items()
    }
    little = [level for level in levels if _says_zero(level)]
    if little and sum(map(_begins_with_a_number, texts)) > 1:
        for level in little:
            after = int(bare(level) in TRACE)
            # Alphabetical codes have no 0, so zero-like words come before all of them.
            said[level] = (-np.inf, str(after)) if padded else (0.0, after, (), level)
    return sorted(levels, key=lambda level: (order.get(level, len(order)), said[level]))


def have_order(levels: Sequence[str], column: pd.Series) -> bool:
    """Whether `in_order` finds more than an alphabetical order for the `levels` of `column`.

    Two levels with digits count as ordered: they may be bands, numbered words or codes.
    """
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return True
    return bool(ranks(levels)) or sum(bool(_DIGIT.search(level)) for level in levels) > 1


def with_own_levels(levels: Mapping[int, Sequence[str]]) -> set[int]:
    """Columns that share at most one level with any other column; levels: of each column."""
    having = defaultdict(set)
    for column, theirs in levels.items():
        for level in theirs:
            having[level].add(column)
    found = set()
    for column, theirs in levels.items():
        met = {column}
        for level in theirs:
            others = having[level] - {column}
            if met & others:
                break
            met |= others
        else:
            found.add(column)
    return found


def _are_bands(levels: Sequence[str]) -> bool:
    """Whether all `levels` with an answer begin with a number, and two of them are bands."""
    found = [_BAND.match(level) for level in levels if not _says_no_number(level)]
    bands = sum(
        bool(band["below"] or band["above"] or _ENDS.match(band.string, band.end()))
        for band in found
        if band
    )
    return all(found) and bands > 1


def _what_is_said(levels: Sequence[str]) -> dict[str, str]:
    """Map each level to its part that begins with a number, if all levels have one, else to itself.

    Words for nothing need no such part. The part is what stands in brackets or after a colon (low
    (0-5), high (6+)), or after the words with which all levels begin, provided that there is a
    bound (age <5, age 5-9).
    """
    whole = {level: level for level in levels}
    numbered = [level for level in levels if not _says_no_number(level)]
    explained = [_EXPLAINED.fullmatch(level) for level in numbered]
    parts = [found[found.lastgroup or 0].strip() if found else "" for found in explained]
    if not all(map(_begins_with_a_number, parts)):
        rest = [level.split() for level in numbered]
        shared = n_shared(rest)
        parts = [" ".join(words[shared:]) for words in rest]
        if not any(found["below"] or found["above"] for found in map(_BAND.match, parts) if found):
            return whole
    if parts and all(map(_begins_with_a_number, parts)) and len(set(parts)) == len(parts):
        return whole | dict(zip(numbered, parts, strict=True))
    return whole


def _begins_with_a_number(text: str) -> bool:
    return bool(_BAND.match(text) or _INTERVAL.match(text))


def _says_zero(level: str) -> bool:
    """Whether `level` is a word for 0 or a trace, or a phrase such as "no children"."""
    words = bare(level)
    return words in ZERO | TRACE or (words.startswith("no ") and not no_answer(level))


def _says_no_number(level: str) -> bool:
    return _says_zero(level) or no_answer(level)


def _by_alphabet(level: str) -> tuple:
    value = _value(level)
    return np.inf if value is None else value, level


def _by_numbers(level: str, times: float) -> tuple:
    """Sort key: numbers and bands by value, words alphabetically with numbers in them by value.

    times: the factor of the unit of the level's first number.
    """
    value, side = _value(level), 0
    if value is None:
        value = _lower_end(level)
    if value is None and (band := _BAND.match(level)):
        value = _of(band["number"])
        side = bool(band["above"]) - bool(band["below"])
    # Words are at even positions, numbers at odd ones, so tuples compare without type errors.
    pieces = tuple(_of(piece) if k % 2 else piece for k, piece in enumerate(_SPLIT.split(level)))
    return np.inf if value is None else times * value, side, pieces, level


def _lower_end(level: str) -> float | None:
    """The lower end of the interval `level`; None if it is not an interval."""
    ends = _INTERVAL.fullmatch(level)
    return _value(ends[1]) if ends and _value(ends[2]) is not None else None


def _value(level: str) -> float | None:
    """The number that the entire `level` reads as; None if it is not a number."""
    try:
        value = float(level)
    except ValueError:
        return None
    return None if np.isnan(value) else value


def _of(digits: str) -> float:
    return float(digits.replace(",", ""))
