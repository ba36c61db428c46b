"""Choose the encoder of each column of a table, or say why the column is left out."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import as_words
from puicl_model.preprocessing.column_doubts import (
    FREE_TEXT,
    MISSPELLED,
    NUMBERS_AND_WORDS,
    ROW_NUMBER,
)
from puicl_model.preprocessing.columns import CategoryColumn, Column, DateColumn, NumberColumn
from puicl_model.preprocessing.dates import looks_like_dates
from puicl_model.preprocessing.find_spelling import spelling_of, words_beside
from puicl_model.preprocessing.judging import (
    MIN_ROWS_TO_JUDGE,
    NAMES_SHARE,
    are_many,
    have_zeros_in_front,
    is_row_number,
    may_identify,
    n_groups,
    padded_code,
    read_numbers,
)
from puicl_model.preprocessing.placeholders import may_be_one_of_few, placeholders, without
from puicl_model.preprocessing.slips import find_slip
from puicl_model.preprocessing.spelled_dates import DateSpelling
from puicl_model.preprocessing.spelling import Spelling, texts_and_others
from puicl_model.preprocessing.unread_spellings import misspelled


@dataclass(frozen=True)
class Settings:
    """Parameters of `TablePreprocessor` that apply to all columns; see there."""

    one_hot_levels: int
    rare_below: int
    indicator_share: float
    drop_identifiers: bool


@dataclass(frozen=True)
class Told:
    """Findings about a column that `fit` may warn of.

    misspelled: a cell of a category that looks like a number or a date; identifies: whether numbers
    may identify rows; code: one that looks like a code (`padded_code`); words_beside: see
    `find_spelling.words_beside`; marks: texts that were taken for missing cells but may be values;
    n_groups: see `judging.n_groups`.
    """

    misspelled: str = ""
    identifies: bool = False
    code: str = ""
    words_beside: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    n_groups: int = 0


@dataclass(frozen=True)
class Choice:
    """A column's fitted encoder, or the reason why it is left out.

    said: the column in the form that the encoder reads; told: findings to warn of.
    """

    said: pd.Series
    encoder: Column | None = None
    left_out: str = ""
    told: Told = Told()


def choose(name: str, column: pd.Series, settings: Settings, *, categorical: bool) -> Choice:
    """Choose the encoder for `column`, which is called `name`.

    categorical: whether the user declared it a category. Raises `ValueError` for cells that cannot
    be read.
    """
    if column.isna().all():
        return Choice(column, left_out="empty")
    try:
        if categorical:
            return Choice(column, _category(column, settings))
        chosen = _by_its_cells(name, column, settings)
    except (ValueError, OverflowError) as error:  # OverflowError: integers beyond float's range
        raise ValueError(f"column {name}: {error}") from None
    if chosen.left_out or chosen.told.identifies:
        return chosen
    return replace(chosen, told=replace(chosen.told, n_groups=n_groups(name, column)))


def _by_its_cells(name: str, column: pd.Series, settings: Settings) -> Choice:
    texts, no_texts = texts_and_others(column)
    if choice := _as_read(name, column, texts, no_texts, settings):
        return choice
    if choice := _without_placeholders(name, column, texts, no_texts, settings):
        return choice
    words, missing = as_words(column)
    return _text(name, column, words[~missing], words_beside(texts, no_texts), settings)


def _as_read(
    name: str, column: pd.Series, texts: list[str], no_texts: list[Any], settings: Settings
) -> Choice | None:
    """The choice for a column of numbers or dates; None for any other column.

    texts, no_texts: result of `texts_and_others` for the column.
    """
    if looks_like_dates(column):
        return Choice(column, DateColumn(column, settings.indicator_share))
    if (said := read_numbers(column)) is not None:
        chosen = _numbers(name, said, settings, padded=have_zeros_in_front(column))
        if chosen.left_out or chosen.told.identifies:
            return chosen
        return replace(chosen, told=replace(chosen.told, code=padded_code(column)))
    if not (spelling := spelling_of(texts, no_texts)):
        return None
    said = spelling.read(column)
    if isinstance(spelling, DateSpelling):
        return Choice(said, DateColumn(said, settings.indicator_share, spelling))
    return _numbers(name, said, settings, spelling)


def _without_placeholders(
    name: str, column: pd.Series, texts: list[str], no_texts: list[Any], settings: Settings
) -> Choice | None:
    """The choice for numbers or dates mixed with placeholders such as `unknown`, else None.

    Also None if there are marks such as `-` beside few different numbers, where they may be values.
    """
    if not (found := placeholders(texts, no_texts)):
        return None
    rest = without(column, found)
    marks = sorted(filter(may_be_one_of_few, found))
    texts = [text for text in texts if text not in found]
    if marks and not are_many(len({*texts, *map(str, no_texts)}), int(rest.notna().sum())):
        return None
    choice = _as_read(name, rest, texts, no_texts, settings)
    return choice and replace(choice, told=replace(choice.told, marks=marks))


def _text(
    name: str, column: pd.Series, words: np.ndarray, beside: list[str], settings: Settings
) -> Choice:
    """The choice for a column that cannot be read as numbers or dates.

    words: text of the cells that are not missing; beside: result of `words_beside`.
    """
    are_plain = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").notna().to_numpy()
    n_plain, others = len(pd.unique(words[are_plain])), pd.unique(words[~are_plain])
    n_different = n_plain + len(others)
    slip = find_slip(column, n_different)
    if slip and not slip.is_code:
        raise ValueError(slip.refusal)
    code = str(slip.cell) if slip else ""
    cell = misspelled(others.tolist(), n_plain)
    named = len(words) >= MIN_ROWS_TO_JUDGE and n_different > NAMES_SHARE * len(words)
    if settings.drop_identifiers and named:
        why = NUMBERS_AND_WORDS if are_plain.mean() >= NAMES_SHARE else FREE_TEXT
        why = MISSPELLED if cell else why
        return Choice(column, left_out=why, told=Told(words_beside=beside))
    # If only single words keep the column from being read, the warning names these words instead.
    odd = "" if beside or isinstance(column.dtype, pd.CategoricalDtype) else cell or code
    return Choice(column, _category(column, settings), told=Told(odd, words_beside=beside))


def _numbers(
    name: str,
    said: pd.Series,
    settings: Settings,
    spelling: Spelling | None = None,
    *,
    padded: bool = False,
) -> Choice:
    if settings.drop_identifiers and is_row_number(name, said):
        return Choice(said, left_out=ROW_NUMBER)
    encoder = NumberColumn(said, settings.indicator_share, spelling)
    return Choice(said, encoder, told=Told(identifies=may_identify(name, said, padded=padded)))


def _category(column: pd.Series, settings: Settings) -> CategoryColumn:
    return CategoryColumn(column, settings.one_hot_levels, settings.rare_below)
