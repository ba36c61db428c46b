"""Labels from decision trees: one condition is checked after another, as in guidelines.

A random binary tree over the relevant columns gives the class. Each inner node compares a random
column with the value of a random row of that node, and each leaf has one class.
"""

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.drawn import relevant_columns
from prior_gen.extensions.propose import accepted_classes
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The depth of the tree; each task draws its own columns, thresholds and classes."""
    return {"depth": int(rng.integers(*config.tree_depth, endpoint=True))}


def tree_labels(
    rng: np.random.Generator, parameters: dict, drawn: dict, x: np.ndarray, counts: ClassCounts
) -> tuple[np.ndarray, dict]:
    """is_negative [n] by a random tree over x [n, d], and the tree's facts."""
    relevant = relevant_columns(x.shape[1], drawn)

    def propose(attempt: int):
        leaves, columns = random_leaves(rng, x, relevant, parameters["depth"])
        return _classes_of_leaves(rng, leaves, counts), columns

    return accepted_classes(rng, counts, propose)


def random_leaves(
    rng: np.random.Generator, x: np.ndarray, relevant: np.ndarray, depth: int
) -> tuple[np.ndarray, list[int]]:
    """The leaf of each row of x [n, d] in a new random tree, int [n], and the columns it uses."""
    leaves = np.zeros(len(x), dtype=int)
    nodes, columns, fresh = [np.arange(len(x))], set(), 1
    for _ in range(depth):
        children = []
        for rows in nodes:
            column = int(rng.choice(relevant))
            values = x[rows, column]
            above = values > values[int(rng.integers(len(rows)))]
            if above.any():
                columns.add(column)
                leaves[rows[above]] = fresh
                fresh += 1
                children += [rows[~above], rows[above]]
            else:
                children.append(rows)
        nodes = children
    return leaves, sorted(columns)


def _classes_of_leaves(
    rng: np.random.Generator, leaves: np.ndarray, counts: ClassCounts
) -> np.ndarray:
    """Make leaves negative in random order until about a random share of the rows is negative."""
    lowest, highest = counts.negative, len(leaves) - counts.positive
    wanted = rng.integers(lowest, highest, endpoint=True)
    sizes = np.bincount(leaves)
    order = rng.permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    is_negative = np.zeros(len(sizes), dtype=bool)
    is_negative[order[before + sizes[order] / 2 <= wanted]] = True
    return is_negative[leaves]
