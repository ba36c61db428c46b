"""Which of the known ways of writing numbers or dates the cells of a column have."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pandas as pd

from puicl_model.preprocessing.spelled_dates import DateSpelling, date_spelling
from puicl_model.preprocessing.spelled_measures import MeasureSpelling, measure_spelling
from puicl_model.preprocessing.spelled_numbers import NumberSpelling, number_spelling
from puicl_model.preprocessing.spelling import Spelling, texts_and_others

_MOST_WORDS, _MANY = 2, 20
_DIGIT = re.compile(r"\d")

_KINDS = {kind.kind: kind for kind in (DateSpelling, MeasureSpelling, NumberSpelling)}


def spelling_of(texts: Sequence[str], others: Sequence[Any]) -> Spelling | None:
    """How all cells of a column say numbers or dates; None where not all do, or not in one way.

    texts: the different ones, others: cells that are no text (`texts_and_others`), which Python
    and pandas do not read by themselves.
    """
    for find in (measure_spelling, date_spelling, number_spelling):
        if texts and (found := find(texts, others)):
            return found
    return None


def amounts_with_commas(column: pd.Series) -> NumberSpelling | None:
    """How all cells of `column` say numbers with a unit or a currency and a decimal comma.

    None where not all do. Where the mark is known, 1,250 kg beside 2 kg leaves one reading.
    """
    texts, others = texts_and_others(column)
    spelling = number_spelling(texts, others, decimal=",") if texts else None
    if spelling is None or not (spelling.before or set(spelling.units) != {""}):
        return None
    return spelling


def words_beside(texts: Sequence[str], others: Sequence[Any]) -> list[str]:
    """The one or two words without which more than 20 different cells would be read.

    Such as `Varies with device` beside 2.5M and 14k; empty where there are none, or more of them.
    texts, others: see `spelling_of`.
    """
    # No more of them than would be too many are looked for.
    words = list(islice((text for text in texts if not _DIGIT.search(text)), _MOST_WORDS + 1))
    said = [text for text in texts if text not in words] if len(words) <= _MOST_WORDS else []
    return words if words and len(said) > _MANY and spelling_of(said, others) else []


def spelling_from(state: dict[str, Any] | None) -> Spelling | None:
    """The spelling whose `state` this is."""
    if state is None:
        return None
    return _KINDS[state["kind"]](**{name: value for name, value in state.items() if name != "kind"})
