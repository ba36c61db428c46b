"""Text that stands where nothing is known, beside numbers or dates: `unknown`, `n.a.`, `#DIV/0!`.

Among words such text is a level of its own, as it may say something there.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

import pandas as pd

from puicl_model.preprocessing.scales import NO_ANSWER, bare

# No placeholder is longer, and no longer text need be looked at.
_LONGEST = 24
# By `bare`, to which n.a., N/A and n-a are one.
_WORDS = (NO_ANSWER - {"other"}) | {
    *("n a", "na", "nan", "nat", "null", "blank", "empty", "undefined")
}
# What spreadsheets show for what they cannot compute, in several languages: #DIV/0!, #NAME?, #N/D.
_ERROR = re.compile(r"#¡?[A-Z/0]{2,}[!?]|#N/?[ADV]")
# As SAS and Stata write a missing number.
_POINTS = re.compile(r"\.{1,3}|…")
# As tables are printed. Of few values a dash may be one (of a test: negative), and a spreadsheet's
# format for money shows 0 as one.
_MARK = re.compile(r"[-_\u2010-\u2015\u2212]{1,3}|\*{1,3}|:")
_DIGIT = re.compile(r"\d")


def is_placeholder(text: str) -> bool:
    """Whether `text`, without blanks around it, stands for nothing beside numbers or dates."""
    if len(text) > _LONGEST or (_DIGIT.search(text) and not text.startswith("#")):
        return False
    return bare(text) in _WORDS or any(way.fullmatch(text) for way in (_ERROR, _POINTS, _MARK))


def may_be_one_of_few(placeholder: str) -> bool:
    """Whether it is a mark, such as `-`, that also stands for a value."""
    return _MARK.fullmatch(placeholder) is not None


def placeholders(texts: Iterable[str], others: Collection[Any]) -> set[str]:
    """Those of a column's `texts` that stand for nothing if all other cells say numbers or dates.

    Empty where one without a digit does not, and where there are no others.
    """
    found, numbers = set(), len(others)
    for text in texts:
        if is_placeholder(text):
            found.add(text)
        elif _DIGIT.search(text):
            numbers += 1
        else:  # as a rule, the first one of a column of words
            return set()
    return found if numbers else set()


def without(column: pd.Series, words: Collection[str] | None = None) -> pd.Series:
    """`column` with None for `words` (all placeholders by default); itself where there are none."""
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
