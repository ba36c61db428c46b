"""What every way to write numbers or dates other than Python's has: its reading of a column."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import of_cells

# No number or date is longer, and no longer text need be looked at.
_LONGEST = 48


@dataclass(frozen=True)
class Spelling:
    """How the cells of one column say numbers or dates; a function of cell from the fit on.

    example: a cell of the fit, which refusals name.
    """

    kind: ClassVar[str]
    what: ClassVar[str] = "a number"

    example: str

    def of_text(self, cell: str) -> Any:
        """What `cell` says; None where it cannot be read."""
        raise NotImplementedError

    def of_other(self, cell: Any) -> Any:
        """What a cell says that is no text, and is not missing; None where it cannot be read."""
        raise NotImplementedError

    def read(self, column: pd.Series) -> pd.Series:
        """`column` with what its cells say; missing ones are None.

        Raises `ValueError` naming the first cell that cannot be read.
        """
        rows = np.flatnonzero(column.notna())
        known = column.iloc[rows]
        said = of_cells(known, self._of_any_text, self.of_other)
        for row, cell, what in zip(rows, known, said, strict=True):
            if what is None:
                told = cell.item() if isinstance(cell, np.generic) else cell
                raise ValueError(
                    f"row {row} holds {told!r}, not {self.what} written like {self.example!r}, as "
                    "at the fit"
                )
        cells = np.full(len(column), None)
        cells[rows] = said
        return pd.Series(cells, column.index, dtype=object)

    def _of_any_text(self, cell: str) -> Any:
        return self.of_text(cell) if len(cell) <= _LONGEST else None

    def state(self) -> dict[str, Any]:
        """Plain data, with the `kind`."""
        return {"kind": self.kind, **asdict(self)}


def texts_and_others(column: pd.Series) -> tuple[list[str], list[Any]]:
    """The different texts of `column`, and its other cells; neither where a text is too long.

    Nor where the type says what cells are, as a categorical's does.
    """
    cells = column.dropna().tolist() if column.dtype == object else []
    texts = list(dict.fromkeys(cell for cell in cells if isinstance(cell, str)))
    if max(map(len, texts), default=0) > _LONGEST:
        return [], []
    return texts, [cell for cell in cells if not isinstance(cell, str)]


def reads_all(spelling: Spelling, texts: Iterable[str], others: Iterable[Any]) -> bool:
    """Whether `spelling` can read every cell."""
    return all(spelling.of_text(text) is not None for text in texts) and all(
        spelling.of_other(other) is not None for other in others
    )
