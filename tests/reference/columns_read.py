"""Columns of numbers, and a table as `TablePreprocessor` reads it."""

import numpy as np
import pandas as pd

from puicl_model import TablePreprocessor

N = 40


def numbers(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=N)


def fit(**columns) -> tuple[TablePreprocessor, pd.DataFrame]:
    """Fitted, and its output under its own names."""
    fitted = TablePreprocessor()
    out = fitted.fit_transform(pd.DataFrame(columns))
    return fitted, pd.DataFrame(out, columns=fitted.get_feature_names_out())


def fit_cells(text: str) -> tuple[TablePreprocessor, pd.DataFrame]:
    """`fit` to a column "a" of the cells in `text`, parted by bars and taken in turn, and "b"."""
    cells = np.resize(np.array(text.split("|"), dtype=object), 12)
    return fit(a=cells, b=numbers()[:12])
