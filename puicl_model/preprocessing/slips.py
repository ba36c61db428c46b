"""Find typing errors among many different numbers or dates, and tell them from codes."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from puicl_model.preprocessing.dates import no_dates
from puicl_model.preprocessing.judging import MANY_LEVELS, NAMES_SHARE, are_many
from puicl_model.preprocessing.placeholders import is_placeholder
from puicl_model.preprocessing.unread_spellings import BOUND

# Text in less than this share of a column of many different numbers counts as slips.
_FEW = 0.2
# So do one or two words in less than half of the cells, such as "nil" for what was not measured.
_MARKS_SHARE, _MARKS = 0.5, 2
# But codes such as V57, E819.2 and K35 among numbers belong to one list, and so does 0042T if there
# are three codes with a letter first. Without those, 180H may be a number marked as high.
_CODE = re.compile(r"(?P<first>[A-Z]{1,2})?\d[\d.]*[A-Z]?")
_LEAST_CODES = 3


@dataclass(frozen=True)
class Slip:
    """A cell that is not what the others of its column are.

    kind: "number" or "date", what the others are; few: whether nearly all others are; is_code:
    whether all such cells of the column are codes, so that the column is one of categories.
    """

    row: int
    cell: Any
    kind: str
    few: bool
    is_code: bool

    @property
    def refusal(self) -> str:
        """The sentence that refuses the column: what is wrong, where, and what would be right."""
        mend = "correct or empty the cell"
        if self.kind == "number" and (bound := BOUND.fullmatch(str(self.cell))):
            # A fraction of a lower bound (`>1000`) would be below all that it stands for.
            half = ", or half of it" if str(self.cell)[0] in "<≤" else ""
            mend = f"write bounds as numbers ({bound['number']}{half})"
        if self.kind == "number" and _CODE.fullmatch(str(self.cell).upper()):
            mend += ", leave the column out if it only names rows"
        others = "nearly all others" if self.few else "most others"
        return (
            f"row {self.row} holds {self.cell!r}, not a {self.kind}, as {others} are; {mend}, or "
            "name the column in categorical_features"
        )


def find_slip(column: pd.Series, distinct: int) -> Slip | None:
    """The first slip in a column of many different numbers, or dates; None if there is none.

    distinct: the number of different values of `column`. A categorical has no slips.
    """
    known = column.dropna()
    if isinstance(column.dtype, pd.CategoricalDtype) or not are_many(distinct, len(known)):
        return None
    for bad, kind in (
        (pd.to_numeric(known, errors="coerce").isna().to_numpy(), "number"),
        (no_dates(known), "date"),
    ):
        few = bool(bad.mean() < _FEW)
        if not (few and bad.any()) and not _are_marks(known, bad):
            continue
        # Name other words first: without them, placeholders would be read as missing.
        row = int(min(known.index[bad], key=lambda row: (_is_placeholder(column[row]), row)))
        # Codes repeat, measurements do not. Dates are never codes.
        repeat = distinct <= NAMES_SHARE * len(known)
        return Slip(
            row, column[row], kind, few, kind == "number" and repeat and _are_codes(known[bad])
        )
    return None


def _are_marks(known: pd.Series, bad: np.ndarray) -> bool:
    """Whether the `bad` cells are a minority of one or two words among many different numbers."""
    if not 0 < bad.mean() < _MARKS_SHARE:
        return False
    return known[bad].nunique() <= _MARKS and known[~bad].nunique() > MANY_LEVELS


def _are_codes(words: pd.Series) -> bool:
    """Whether all `words` are codes, of which at least three different ones begin with a letter."""
    found = [_CODE.fullmatch(str(word)) for word in words.unique()]
    return all(found) and sum(code["first"] is not None for code in found if code) >= _LEAST_CODES


def _is_placeholder(cell: Any) -> bool:
    return isinstance(cell, str) and is_placeholder(cell)
