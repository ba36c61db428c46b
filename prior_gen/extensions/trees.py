"""Tree-shaped labels: decisions made one condition after another, such as grades and guidelines.

A random binary tree over the relevant columns; each inner node asks whether a random column lies
above the value of a random row of the node, and each leaf has one class.
"""

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.drawn import relevant_columns
from prior_gen.extensions.propose import accepted_classes
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The depth of the tree; columns, thresholds and classes are each task's own."""
    return {"depth": int(rng.integers(*config.tree_depth, endpoint=True))}


def tree_labels(
    rng: np.random.Generator, parameters: dict, drawn: dict, x: np.ndarray, counts: ClassCounts
) -> tuple[np.ndarray, dict]:
    """is_negative [n] by a random tree over x [n, d], and its facts."""
    relevant = relevant_columns(x.shape[1], drawn)

    def propose(attempt: int):
        leaves, columns = random_leaves(rng, x, relevant, parameters["depth"])
        return _classes_of_leaves(rng, leaves, counts), columns

    return accepted_classes(rng, counts, propose)


def random_leaves(
    rng: np.random.Generator, x: np.ndarray, relevant: np.ndarray, depth: int
) -> tuple[np.ndarray, list[int]]:
    """In which leaf of a new tree each row of x [n, d] lies, int [n], and the columns asked."""
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
    """Leaves become negative in random order until a random share of the rows is."""
    lowest, highest = counts.negative, len(leaves) - counts.positive
    wanted = rng.integers(lowest, highest, endpoint=True)
    sizes = np.bincount(leaves)
    order = rng.permutation(len(sizes))
    before = np.cumsum(sizes[order]) - sizes[order]
    is_negative = np.zeros(len(sizes), dtype=bool)
    is_negative[order[before + sizes[order] / 2 <= wanted]] = True
    return is_negative[leaves]
