"""What every way to write numbers or dates other than Python's has: its reading of a column."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

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
        """What `cell`, without blanks around it, says; None where it cannot be read."""
        raise NotImplementedError

    def of_other(self, cell: Any) -> Any:
        """What a cell says that is no text, and is not missing; None where it cannot be read."""
        raise NotImplementedError

    def read(self, column: pd.Series) -> pd.Series:
        """`column` with what its cells say; missing ones are None.

        Raises `ValueError` naming the first cell that cannot be read.
        """
        read: dict[str, Any] = {}
        cells: list[Any] = []
        missing = column.isna().tolist()
        for row, (cell, gone) in enumerate(zip(column.tolist(), missing, strict=True)):
            if gone:
                cells.append(None)
                continue
            if isinstance(cell, str):
                if cell not in read:
                    read[cell] = self.of_text(cell.strip()) if len(cell) <= _LONGEST else None
                said = read[cell]
            else:
                said = self.of_other(cell)
            if said is None:
                told = cell.item() if isinstance(cell, np.generic) else cell
                raise ValueError(
                    f"row {row} holds {told!r}, not {self.what} written like {self.example!r}, as "
                    "at the fit"
                )
            cells.append(said)
        return pd.Series(cells, column.index, dtype=object)

    def state(self) -> dict[str, Any]:
        """Plain data, with the `kind`."""
        return {"kind": self.kind, **asdict(self)}


def texts_and_others(column: pd.Series) -> tuple[list[str], list[Any]] | None:
    """The different texts of `column`, without blanks around them, and its other cells.

    None where there is no text, or one that is too long.
    """
    known = column.dropna()
    texts: dict[str, None] = {}
    others = []
    for cell in known:
        if not isinstance(cell, str):
            others.append(cell)
        elif len(cell) > _LONGEST:
            return None
        else:
            texts[cell.strip()] = None
    return (list(texts), others) if texts else None


def reads_all(spelling: Spelling, texts: Iterable[str], others: Iterable[Any]) -> bool:
    """Whether `spelling` can read every cell."""
    return all(spelling.of_text(text) is not None for text in texts) and all(
        spelling.of_other(other) is not None for other in others
    )
