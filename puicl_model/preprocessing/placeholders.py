"""Placeholders for missing cells among numbers or dates: `unknown`, `n.a.`, `#DIV/0!`.

In a column of words such a text remains a level of its own, since it may carry information there.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

from puicl_model.preprocessing.scales import NO_ANSWER, bare

# No placeholder is longer than this, so longer text need not be examined.
_LONGEST = 24
# In the form that `bare` returns, which is the same for n.a., N/A and n-a.
_WORDS = (NO_ANSWER - {"other"}) | {
    *("n a", "na", "nan", "nat", "null", "blank", "empty", "undefined")
}
# Errors of spreadsheets in several languages: #DIV/0!, #NAME?, #N/D
_ERROR = re.compile(r"#¡?[A-Z/0]{2,}[!?]|#N/?[ADV]")
# Missing numbers in SAS and Stata.
_POINTS = re.compile(r"\.{1,3}|…")
# Marks in printed tables. A dash may also be a value: a negative test, or 0 in a spreadsheet's
# format for money.
_MARK = re.compile(r"[-_\u2010-\u2015\u2212]{1,3}|\*{1,3}|:")
_DIGIT = re.compile(r"\d")


def is_placeholder(text: str) -> bool:
    """Whether `text`, already stripped, means a missing cell among numbers or dates."""
    if len(text) > _LONGEST or (_DIGIT.search(text) and not text.startswith("#")):
        return False
    return bare(text) in _WORDS or any(way.fullmatch(text) for way in (_ERROR, _POINTS, _MARK))


def may_be_one_of_few(placeholder: str) -> bool:
    """Whether the placeholder is a mark such as `-`, which may also be a value."""
    return _MARK.fullmatch(placeholder) is not None


def placeholders(texts: Iterable[str], others: Collection[Any]) -> set[str]:
    """The placeholders among a column's `texts`, if all its other cells may be numbers or dates.

    others: cells that are not text. Empty if another text has no digit, or if there are no other
    cells.
    """
    found, numbers = set(), len(others)
    for text in texts:
        if is_placeholder(text):
            found.add(text)
        elif _DIGIT.search(text):
            numbers += 1
        else:  # a column of words usually returns at its first text
            return set()
    return found if numbers else set()


def without(column: pd.Series, words: Collection[str] | None = None) -> pd.Series:
    """`column` with None in place of `words` (default: all placeholders); unchanged if none."""
    if column.dtype != object:
        return column
    if words is None:
        words = {cell for cell in set(filter(_is_text, column)) if is_placeholder(cell)}
    if not words:
        return column
    cells = [None if _is_text(cell) and cell in words else cell for cell in column]
    return pd.Series(cells, column.index, dtype=object)


def _is_text(cell: object) -> bool:
    return isinstance(cell, str)
