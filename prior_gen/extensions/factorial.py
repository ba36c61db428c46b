"""Factorial designs: rows from a list of all combinations of the columns' levels.

The data sets MONK's, Car and Balance Scale are such lists. No row occurs twice in them, so a row
has no labelled twin that tells its class, while neighbours that differ from it in one column tell
much. Independent cells in a few discrete columns, in contrast, produce twins. The list is the pool
that the task is sampled from. A list that is too short is replicated, and then has twins, too.
"""

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.drawn import log_uniform
from puicl_config import ExtensionsConfig

# Extensions that a design replaces. It makes the columns, and changing these would break the list.
# `principal_axes` is excluded since the classifier does not rotate tables of discrete columns only.
REPLACED = frozenset(
    {
        *("independent", "factor_model", "graph"),
        *("discrete", "warped", "irrelevant", "duplicated", "proportional", "censored"),
        "principal_axes",
    }
)
_MOST_ROWS = 8192  # a larger design is sampled


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The order of the levels, the most levels of a column, and the design's size.

    `size` is the number of combinations per row of the finished task, log-uniform. Each task draws
    its own numbers of levels.
    """
    order = ("ordinal", "nominal")[int(rng.integers(2))]
    most = int(rng.integers(*config.levels, endpoint=True))
    return {
        "order": order,
        "most_levels": most,
        "size": round(log_uniform(rng, config.factorial_size), 4),
    }


def factorial_codes(
    rng: np.random.Generator, parameters: dict, counts: ClassCounts, d: int
) -> tuple[np.ndarray, list[int]]:
    """Codes int [n, d] of a design, and the number of levels of each column, a list of d.

    Columns have two levels at first. Random columns get more until the design has its size or all
    columns have `most_levels`. A design that is too small is replicated. If a design has more than
    8,192 combinations (or twice the task's rows, if that is more), random ones are taken. Without
    repeats, at least .6 of that number are left, so tasks of more than about 1,000 rows may fall
    short of `size`.
    """
    rows = counts.positive + counts.negative
    wanted, most_rows = rows * parameters["size"], max(_MOST_ROWS, 2 * rows)
    levels = _levels(rng, parameters["most_levels"], wanted, d)
    if np.prod(levels, dtype=float) > most_rows:
        codes = np.unique(rng.integers(levels, size=(most_rows, d)), axis=0)
    else:
        codes = np.stack(np.unravel_index(np.arange(np.prod(levels)), levels), axis=1)
        codes = np.tile(codes, (int(np.ceil(min(wanted, most_rows) / len(codes))), 1))
    if parameters["order"] == "nominal":
        # One permutation of the codes for the whole table, as in discrete columns.
        order = rng.permutation(max(levels))
        codes = np.stack(
            [order[order < count][column] for count, column in zip(levels, codes.T, strict=True)],
            axis=1,
        )
    return codes, levels


def _levels(rng: np.random.Generator, most: int, size: float, d: int) -> list[int]:
    levels = [2] * d
    while np.prod(levels, dtype=float) < size:
        growing = [column for column, count in enumerate(levels) if count < most]
        if not growing:
            break
        levels[int(rng.choice(growing))] += 1
    return levels
