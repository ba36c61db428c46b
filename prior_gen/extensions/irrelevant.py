"""Irrelevant columns: row numbers, timestamps, measurements that have nothing to do with the class.

The cells of each are shuffled over the rows. It keeps its marginal distribution, so only the
missing relation to the other columns shows that it is irrelevant.
"""

import numpy as np

from prior_gen.extensions.drawn import some_columns
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """The irrelevant columns: at least one, and at least one other stays relevant."""
    columns = some_columns(rng, config.irrelevant_share, np.arange(d))
    return {"columns": columns} if columns else None


def shuffle_irrelevant(rng: np.random.Generator, parameters: dict, *tables: np.ndarray) -> None:
    """Shuffle the cells of each irrelevant column over the rows, in place.

    tables: arrays [n, columns]. Each column has its own permutation, the same one in all tables.
    """
    for column in parameters["columns"]:
        order = rng.permutation(len(tables[0]))
        for table in tables:
            table[:, column] = table[order, column]
