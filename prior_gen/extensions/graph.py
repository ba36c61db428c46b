"""Graphs of different mechanisms: columns and score are nodes of one random causal graph.

In a table of people, customers or measurements, one column depends on a threshold of another, a
second is a plain sum, a third depends on groups, a fourth is a product. The paper's SCM is a
network whose nodes all have the same form and depend on all nodes before them. Here each node is
made of a few earlier nodes by its own kind of function. The score of the classes is a node, too:
some columns cause it, some are its effects, and some nodes in between are not in the table.
"""

import numpy as np

from prior_gen.activations import activate
from prior_gen.elementary import log
from prior_gen.extensions.drawn import log_uniform
from prior_gen.extensions.sums import unit_weights, weighted_sum
from prior_gen.extensions.trees import random_leaves
from prior_gen.standardization import standardize
from puicl_config import ExtensionsConfig

# Extensions that a graph replaces: there is no SCM.
REPLACED = frozenset({"shallow"})
_CLIP = 20.0  # in standard deviations of a node
_MOST_PARENTS = (4, 8)  # of a column and of the score
_UNITS = (2, 8)
_GAIN = (0.5, 4.0)
_BENDS = ("tanh", "relu", "sin", "abs", "rbf")
_DEPTH = (1, 4)
_DOUBLINGS = 2  # a node has up to 2^_DOUBLINGS trees
_GROUPS = (2, 12)
_ROOTS = ("normal", "uniform", "skewed", "two groups")


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Number of hidden nodes, the noise, the kinds of functions, and where the score lies."""
    kinds = np.flatnonzero(rng.random(len(FUNCTIONS)) < 0.6)
    if not len(kinds):
        kinds = rng.integers(len(FUNCTIONS), size=1)
    return {
        "hidden": int(rng.integers(*config.graph_hidden, endpoint=True)),
        "noise": round(log_uniform(rng, config.graph_noise), 4),
        "functions": [list(FUNCTIONS)[kind] for kind in kinds],
        "score": ("last", "anywhere")[int(rng.integers(2))],
    }


def graph_columns(
    rng: np.random.Generator, parameters: dict, n: int, d: int, portable: bool
) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and the score [n], float32; each is a standardised node.

    There are d + `hidden` + 1 ordered nodes. The first ones, up to a third, are roots without
    parents. Every other node has one to four earlier nodes as parents (the score up to eight), of
    which some are chosen more often than others. The node is a standardised function of its parents
    plus normal noise of up to 2 `noise` standard deviations; in a third of the nodes the noise is
    proportional to the magnitude of one parent. The score is the last node or any node that is not
    a root. The columns are d of the other nodes in random order.
    """
    nodes = d + parameters["hidden"] + 1
    roots = int(rng.integers(1, max(1, nodes // 3), endpoint=True))
    label = nodes - 1 if parameters["score"] == "last" else int(rng.integers(roots, nodes))
    popularity = rng.standard_exponential(nodes)
    z = np.empty((n, nodes), np.float32)
    for node in range(nodes):
        z[:, node] = (
            _root(rng, n)
            if node < roots
            else _effect(rng, parameters, z[:, :node], popularity, node == label, portable)
        )
    columns = rng.permutation(np.delete(np.arange(nodes), label))[:d]
    return z[:, columns], z[:, label].copy()


def _root(rng: np.random.Generator, n: int) -> np.ndarray:
    """A node without parents [n]."""
    kind = _ROOTS[int(rng.integers(len(_ROOTS)))]
    values = rng.standard_normal(n)
    if kind == "uniform":
        values = rng.random(n)
    elif kind == "skewed":
        values = -log(1 - rng.random(n))
    elif kind == "two groups":
        values += rng.uniform(2, 5) * (rng.random(n) < rng.uniform(0.1, 0.5))
    return standardize(values.astype(np.float32), _CLIP)


def _effect(
    rng: np.random.Generator,
    parameters: dict,
    earlier: np.ndarray,
    popularity: np.ndarray,
    is_score: bool,
    portable: bool,
) -> np.ndarray:
    """A node [n] made from some of the earlier nodes [n, number of earlier nodes]."""
    count = earlier.shape[1]
    most = int(rng.integers(1, _MOST_PARENTS[is_score], endpoint=True))
    # Draw parents without replacement, in proportion to their popularity.
    hurry = rng.standard_exponential(count) / np.maximum(popularity[:count], 1e-3)
    parents = earlier[:, np.argsort(hurry, kind="stable")[:most]]
    kinds = parameters["functions"]
    made = FUNCTIONS[kinds[int(rng.integers(len(kinds)))]](rng, parents, portable)
    made = standardize(made.astype(np.float32), _CLIP)
    noise = rng.standard_normal(len(made), dtype=np.float32)
    if rng.random() < 1 / 3:
        noise = standardize(noise * np.abs(parents[:, 0]), _CLIP)
    size = np.float32(2 * parameters["noise"] * rng.random())
    return standardize(made + size * noise, _CLIP)


# A function takes (rng, parents [n, k], portable) and returns a node [n].


def linear(rng, parents, portable):
    """A weighted sum."""
    return weighted_sum(parents, unit_weights(rng, (parents.shape[1], 1), 1))[:, 0]


def network(rng, parents, portable):
    """A network with one hidden layer of 2 to 8 units that share one activation."""
    units = int(rng.integers(*_UNITS, endpoint=True))
    gain = np.float32(round(log_uniform(rng, _GAIN), 4))
    inner = gain * weighted_sum(parents, unit_weights(rng, (parents.shape[1], units), 1))
    inner += rng.standard_normal(units, dtype=np.float32)
    bent = activate(_BENDS[int(rng.integers(len(_BENDS)))], inner, 100.0, portable)
    return weighted_sum(bent, unit_weights(rng, (units, 1), 1))[:, 0]


def trees(rng, parents, portable):
    """The sum of one, two or four trees of the same depth whose leaves have normal values."""
    depth = int(rng.integers(*_DEPTH, endpoint=True))
    columns, total = np.arange(parents.shape[1]), np.zeros(len(parents))
    for _ in range(2 ** int(rng.integers(_DOUBLINGS, endpoint=True))):
        leaves, _ = random_leaves(rng, parents, columns, depth)
        total += rng.standard_normal(int(leaves.max()) + 1)[leaves]
    return total


def product(rng, parents, portable):
    """The product of two weighted sums, each with a constant: multiplicative effects."""
    factors = weighted_sum(parents, unit_weights(rng, (parents.shape[1], 2), 3))
    factors += rng.standard_normal(2, dtype=np.float32)
    return factors[:, 0] * factors[:, 1]


def groups(rng, parents, portable):
    """Groups around 2 to 12 random rows: each row has the normal value of the nearest of these."""
    count = min(int(rng.integers(*_GROUPS, endpoint=True)), len(parents))
    centers = parents[rng.permutation(len(parents))[:count]]
    distance = np.zeros((len(parents), count), np.float32)
    for column, own in zip(parents.T, centers.T, strict=True):
        apart = column[:, None] - own
        distance += apart * apart
    return rng.standard_normal(count)[distance.argmin(axis=1)]


FUNCTIONS = {function.__name__: function for function in (linear, network, trees, product, groups)}
