"""Base class of notations for numbers or dates that Python does not read itself."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import of_cells, told

# No number or date is longer than this, so longer text need not be examined.
_LONGEST = 48


@dataclass(frozen=True)
class Spelling:
    """The notation of numbers or dates in one column; once fitted, it reads each cell on its own.

    example: a cell of the fit, which error messages show.
    """

    kind: ClassVar[str]
    what: ClassVar[str] = "a number"

    example: str

    def of_text(self, cell: str) -> Any:
        """Read a text cell; None if it cannot be read."""
        raise NotImplementedError

    def of_other(self, cell: Any) -> Any:
        """Read a cell that is neither text nor missing; None if it cannot be read."""
        raise NotImplementedError

    def read(self, column: pd.Series) -> pd.Series:
        """Read all cells of `column`; missing cells become None.

        Raises `ValueError` naming the first cell that cannot be read.
        """
        rows = np.flatnonzero(column.notna())
        known = column.iloc[rows]
        said = of_cells(known, self._of_any_text, self.of_other)
        for row, cell, what in zip(rows, known, said, strict=True):
            if what is None:
                raise ValueError(
                    f"row {row} holds {told(cell)}, not {self.what} written like "
                    f"{self.example!r}, as at the fit"
                )
        cells = np.full(len(column), None)
        cells[rows] = said
        return pd.Series(cells, column.index, dtype=object)

    def _of_any_text(self, cell: str) -> Any:
        return self.of_text(cell) if len(cell) <= _LONGEST else None

    def state(self) -> dict[str, Any]:
        """The fields and the `kind` as plain data."""
        return {"kind": self.kind, **asdict(self)}


def texts_and_others(column: pd.Series) -> tuple[list[str], list[Any]]:
    """The distinct texts of `column`, and its cells that are not text, without missing ones.

    Both are empty if a text is too long for a number or date, or if `column` is not of dtype
    object, such as a categorical.
    """
    cells = column.dropna().tolist() if column.dtype == object else []
    texts = list(dict.fromkeys(cell for cell in cells if isinstance(cell, str)))
    if max(map(len, texts), default=0) > _LONGEST:
        return [], []
    return texts, [cell for cell in cells if not isinstance(cell, str)]


def reads_all(spelling: Spelling, texts: Iterable[str], others: Iterable[Any]) -> bool:
    """Whether `spelling` can read all `texts` and all `others`."""
    return all(spelling.of_text(text) is not None for text in texts) and all(
        spelling.of_other(other) is not None for other in others
    )
