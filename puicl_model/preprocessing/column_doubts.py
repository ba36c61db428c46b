"""What a fit says of its columns: why some are left out, and which may be taken for the wrong kind.

Each function gives a sentence, or nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# How to have row numbers kept, behind a sentence of those that were not.
KEEP_THEM = ", or preprocessing=TablePreprocessor(drop_identifiers=False)"
ROW_NUMBER = "row number"
FREE_TEXT = "text that names rows"
RARE = "no level of enough rows"
SPELL = "write them like 1234.5 or 2024-12-31"
MISSPELLED = f"text that looks like numbers or dates: {SPELL}"
_WARNED = (ROW_NUMBER, FREE_TEXT, RARE, MISSPELLED)


def left_out(dropped: Mapping[str, str]) -> str:
    """On columns left out that might not have been meant to be; dropped: why each was."""
    told = [f"{name} ({why})" for name, why in dropped.items() if why in _WARNED]
    if not told:
        return ""
    sentence = f"left out: {', '.join(told)}; give numbers or groups to have them used"
    return sentence + (KEEP_THEM if ROW_NUMBER in dropped.values() else "")


def taken_for_categories(misspelled: Mapping[str, Any]) -> str:
    """On columns of text that look like numbers or dates; misspelled: a cell of each."""
    if not misspelled:
        return ""
    told = ", ".join(f"{name} (such as {cell!r})" for name, cell in misspelled.items())
    return f"taken for categories: {told}; to have numbers or dates, {SPELL}"


def taken_for_numbers(identifiers: Sequence[str]) -> str:
    """On columns of numbers that may be identifiers."""
    if not identifiers:
        return ""
    return (
        f"taken for numbers: {', '.join(identifiers)} (whole, each in one row alone); "
        "leave out what only names the rows"
    )


def of_two_clocks(names: Iterable[str]) -> str:
    """On columns in which some dates alone have a time zone."""
    told = ", ".join(names)
    if not told:
        return ""
    return f"dates with and without a time zone: {told}; the latter are read as UTC"
