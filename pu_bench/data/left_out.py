"""Describe the columns that the protocol leaves out, such as numbers spoilt by an odd cell."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from puicl_config import visible

MAX_LEVELS = 10
_LONGEST = 40
_MOST_NAMED = 8


def odd_cell(cells: Sequence[str]) -> str | None:
    """The most frequent non-numeric cell of a column whose cells are mostly numbers.

    Numbers like 1,234 count towards that majority, but are odd cells themselves. None if at least
    half of the non-empty cells are text, or if all are numbers.
    """
    written = Counter(cell for cell in cells if cell)
    numbers = sum(n for cell, n in written.items() if _is_number(cell.replace(",", "")))
    if 2 * numbers <= written.total():
        return None
    return next((cell for cell, _ in written.most_common() if not _is_number(cell)), None)


def left_out_words(left_out: Mapping[str, str | None]) -> str:
    """Say which columns are left out and why. `left_out` maps columns to an odd cell or None."""
    columns = "1 column is" if len(left_out) == 1 else f"{len(left_out)} columns are"
    return f"{columns} left out, categorical with more than {MAX_LEVELS} levels: {listed(left_out)}"


def listed(left_out: Mapping[str, str | None]) -> str:
    """Name at most 8 of these columns, those with an odd cell first."""
    named = [
        f"{_shown(column)} ({_shown(cell)!r} makes text of its numbers)"
        for column, cell in left_out.items()
        if cell is not None
    ]
    named += [_shown(column) for column, cell in left_out.items() if cell is None]
    more = len(named) - _MOST_NAMED
    return ", ".join(named[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _shown(text: str) -> str:
    text = visible(" ".join(text.split()))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
