"""Columns that the protocol leaves out, told in words: numbers with odd cells are among them."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from puicl_config import visible

MAX_LEVELS = 10
_LONGEST = 40
_MOST_NAMED = 8


def odd_cell(cells: Sequence[str]) -> str | None:
    """The most frequent cell that is no number, of a column most of whose cells are numbers.

    Numbers like 1,234 count among those most, and are odd themselves. None where most cells are
    text, or all are numbers.
    """
    written = Counter(cell for cell in cells if cell)
    numbers = sum(n for cell, n in written.items() if _is_number(cell.replace(",", "")))
    if 2 * numbers <= written.total():
        return None
    return next((cell for cell, _ in written.most_common() if not _is_number(cell)), None)


def left_out_words(left_out: Mapping[str, str | None]) -> str:
    """Which columns are left out and why. `left_out` maps columns to an odd cell or None."""
    columns = "1 column is" if len(left_out) == 1 else f"{len(left_out)} columns are"
    return f"{columns} left out, categorical with more than {MAX_LEVELS} levels: {listed(left_out)}"


def listed(left_out: Mapping[str, str | None]) -> str:
    """At most 8 of these columns by name, numbers with an odd cell first."""
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
