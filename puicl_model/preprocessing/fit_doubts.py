"""Collect all warnings of a fit about its table, in the order of presentation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from puicl_model.preprocessing.choice import Told
from puicl_model.preprocessing.column_doubts import (
    left_out,
    of_blank_rows,
    of_codes,
    of_copies,
    of_days_among_bands,
    of_days_as_numbers,
    of_groups,
    of_marks,
    of_none,
    of_nothing,
    of_one_look,
    of_one_word,
    of_points,
    of_rare_levels,
    of_two_clocks,
    of_words_beside,
    taken_for_categories,
    taken_for_numbers,
)
from puicl_model.preprocessing.columns import CategoryColumn, Column, DateColumn, NumberColumn


def fit_doubts(
    encoders: Mapping[str, Column],
    dropped: Mapping[str, str],
    told: Mapping[str, Told],
    rare_below: int,
    blank: np.ndarray,
    outputs: Sequence[np.ndarray],
) -> list[str]:
    """Return the sentences; an empty list if nothing is conspicuous.

    encoders: of the columns in use; dropped: the reason for each other column; told: findings about
    each column; blank: boolean [n], empty rows; outputs: the output columns, [n] each.
    """
    categories = {n: each for n, each in encoders.items() if isinstance(each, CategoryColumn)}
    numbers = {n: each for n, each in encoders.items() if isinstance(each, NumberColumn)}
    dates = {n: each for n, each in encoders.items() if isinstance(each, DateColumn)}
    levels = {name: each.levels for name, each in categories.items()}
    with_gaps = {n for n, each in categories.items() if each.missing and not each.one_hot}
    misspelled = {name: said.misspelled for name, said in told.items() if said.misspelled}
    beside = {name: said.words_beside for name, said in told.items() if said.words_beside}
    nothing: dict[str, Any] = _known({name: each.nothing for name, each in numbers.items()})
    for name, day in _known({name: each.nothing for name, each in dates.items()}).items():
        nothing[name] = np.datetime64(int(day), "D")
    plain = [
        (name, each)
        for name, each in categories.items()
        if name not in misspelled and name not in beside
    ]
    sentences = (
        left_out(dropped),
        of_one_word(levels),
        of_one_look(levels),
        of_days_among_bands(levels),
        of_none({name: theirs for name, theirs in levels.items() if name in with_gaps}),
        taken_for_categories(misspelled),
        of_words_beside(beside),
        of_marks({name: said.marks for name, said in told.items() if said.marks}),
        *(
            of_rare_levels(
                {name: each.rare_share for name, each in plain if each.rare_numbers == digits},
                rare_below,
                numbers=digits,
            )
            for digits in (True, False)
        ),
        taken_for_numbers([name for name, said in told.items() if said.identifies]),
        of_groups({name: told[name].n_groups for name in encoders if told[name].n_groups}),
        of_codes({name: said.code for name, said in told.items() if said.code}),
        of_two_clocks(name for name, each in dates.items() if each.zoned is None),
        of_nothing(nothing),
        of_days_as_numbers(_known({name: each.day for name, each in numbers.items()})),
        of_points(_known({name: each.parted for name, each in numbers.items()})),
        of_blank_rows(blank) if len(told) > 1 else "",  # a single column just has missing cells
        of_copies(outputs),
    )
    return [sentence for sentence in sentences if sentence]


def _known(values: Mapping[str, float | None]) -> dict[str, float]:
    """The columns' `values`, without those of columns that have none."""
    return {name: value for name, value in values.items() if value is not None}
