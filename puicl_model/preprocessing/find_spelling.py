"""Find the notation of numbers or dates that the cells of a column share."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pandas as pd

from puicl_model.preprocessing.judging import MANY_LEVELS
from puicl_model.preprocessing.spelled_dates import DateSpelling, date_spelling
from puicl_model.preprocessing.spelled_measures import MeasureSpelling, measure_spelling
from puicl_model.preprocessing.spelled_numbers import NumberSpelling, number_spelling
from puicl_model.preprocessing.spelling import Spelling, texts_and_others

_MOST_WORDS = 2
_DIGIT = re.compile(r"\d")

_KINDS = {kind.kind: kind for kind in (DateSpelling, MeasureSpelling, NumberSpelling)}


def spelling_of(texts: Sequence[str], others: Sequence[Any]) -> Spelling | None:
    """The notation in which all cells of a column are numbers or dates; None if there is none.

    texts, others: result of `texts_and_others` for a column that Python and pandas do not read by
    themselves: the distinct texts, and the cells that are not text.
    """
    for find in (measure_spelling, date_spelling, number_spelling):
        if texts and (found := find(texts, others)):
            return found
    return None


def amounts_with_commas(column: pd.Series) -> NumberSpelling | None:
    """The notation in which all cells are numbers with a unit or currency and a decimal comma.

    None if there is none. Because the decimal mark is given, even 1,250 kg beside 2 kg is
    unambiguous.
    """
    texts, others = texts_and_others(column)
    spelling = number_spelling(texts, others, decimal=",") if texts else None
    if spelling is None or not (spelling.before or set(spelling.units) != {""}):
        return None
    return spelling


def words_beside(texts: Sequence[str], others: Sequence[Any]) -> list[str]:
    """The one or two words that keep more than 20 different texts from being read, else empty.

    For example, `Varies with device` beside 2.5M and 14k. Empty if there are more such words.
    texts, others: see `spelling_of`.
    """
    # Stop at the first word too many.
    words = list(islice((text for text in texts if not _DIGIT.search(text)), _MOST_WORDS + 1))
    said = [text for text in texts if text not in words] if len(words) <= _MOST_WORDS else []
    return words if words and len(said) > MANY_LEVELS and spelling_of(said, others) else []


def spelling_from(state: dict[str, Any] | None) -> Spelling | None:
    """Restore a spelling from its `state`; None for None."""
    if state is None:
        return None
    return _KINDS[state["kind"]](**{name: value for name, value in state.items() if name != "kind"})
