"""Irrelevant columns: row numbers, timestamps, measurements that have nothing to do with the class.

Each keeps its marginal (its cells are shuffled over the rows), so nothing but the missing relation
to the rest tells it apart.
"""

import numpy as np

from prior_gen.extensions.drawn import some_columns
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """Which columns; at least one, and one stays relevant."""
    columns = some_columns(rng, config.irrelevant_share, np.arange(d))
    return {"columns": columns} if columns else None


def shuffle_irrelevant(rng: np.random.Generator, parameters: dict, *tables: np.ndarray) -> None:
    """Shuffle the columns' cells over the rows, each on its own, alike in all tables; in place."""
    for column in parameters["columns"]:
        order = rng.permutation(len(tables[0]))
        for table in tables:
            table[:, column] = table[order, column]
