"""The base class of the encoders of a table's columns (`columns`)."""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from puicl_model.preprocessing.find_spelling import spelling_from
from puicl_model.preprocessing.placeholders import without
from puicl_model.preprocessing.spelling import Spelling


class Column:
    """Base class of the encoders. `fields` names the attributes that make up the state."""

    kind: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    # How to read cells in a notation that Python does not read itself; None for categories.
    spelling: Spelling | None = None

    @property
    def endings(self) -> list[str]:
        """Suffix of the column's name for each output column."""
        raise NotImplementedError

    def transform(self, column: pd.Series) -> np.ndarray:
        """Encode cells [n] as finite float64 [n, len(endings)].

        Raises `ValueError` for cells that are not of the fitted kind.
        """
        column = without(column)
        return self.encode(column if self.spelling is None else self.spelling.read(column))

    def encode(self, column: pd.Series) -> np.ndarray:
        """`transform` of a column that is already without placeholders and read by `spelling`."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Plain data from which `from_state` restores the encoder."""
        said = {} if self.spelling is None else {"spelling": self.spelling.state()}
        return {"kind": self.kind, **{name: getattr(self, name) for name in self.fields}, **said}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore the encoder from its `state`."""
        encoder = cls.__new__(cls)
        # Fields that files of older versions lack are defined in the class.
        state = {name: getattr(cls, name) for name in cls.fields if hasattr(cls, name)} | state
        for name in cls.fields:
            setattr(encoder, name, state[name])
        encoder.spelling = spelling_from(state.get("spelling"))
        return encoder
