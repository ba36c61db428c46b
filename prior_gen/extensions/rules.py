"""Labels from rules over several columns, as in the MONK's and Car problems.

A rule reads codes: the levels of discrete columns, quantile bins of continuous ones. Only
`product`, `logistic` and `forest` read the columns' values. A condition says that the code of one
column is in a random set.

equality      two columns have the same code
parity        an odd number of `arity` conditions holds (XOR)
count         exactly k of `arity` columns have a certain code
conjunction   all of `arity` conditions hold
disjunction   at least one of `arity` conditions holds
dnf           one of two or three terms holds, each an equality or a pair of conditions
points        weighted codes of `arity` columns sum to more than a limit, like a score card
product       the product of `arity` standardised columns is large: a smooth interaction
tally         exactly k of `arity` conditions hold, or at least k
terms         one of two to four terms holds, each a conjunction of two to four conditions
switch        one or two columns select which of two or four others decides: a multiplexer
blocks        one of two to four terms over disjoint columns holds, up to twelve columns in all
multiplexer   one to three columns select which of two, four or eight others decides
logistic      the effects of up to twelve columns and logistic noise sum to more than a limit
forest        the values of up to sixteen trees over up to eight columns and logistic noise sum to
              more than a limit
hierarchy     a grade is high; it combines the grades of up to twelve columns, two at a time, into
              the worse, the better, their mean or how far they agree

The last eight are drawn only if `rule_kinds` names them, so that older plans keep their tasks.
"""

import functools

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.discrete import CONTINUOUS
from prior_gen.extensions.drawn import relevant_columns
from prior_gen.extensions.propose import accepted_classes
from prior_gen.extensions.trees import random_leaves
from puicl_config import ExtensionsConfig

_MOST_COLUMNS = 8  # of `count`, `tally`, `points` and `forest`
_WIDEST_TERM = 4  # conditions; more would hold too rarely
# Range of the standard deviation of a logistic model's signal (its noise has 1.8): the best
# possible AUC ranges from .63 to .99.
_STRENGTH = (0.5, 8.0)
# A forest has up to 2^_DOUBLINGS trees. Below, the ranges of their depth and of the signal's
# standard deviation.
_DOUBLINGS = 4
_DEPTH = (1, 4)
_FOREST_STRENGTH = (1.0, 16.0)
_PATIENCE = 8  # tries before a rule reads one column less


def draw_kind(rng: np.random.Generator, config: ExtensionsConfig) -> str:
    """Draw the rule's kind; `rng` must be at the start of the stream of `rule_labels`."""
    return config.rule_kinds[int(rng.integers(len(config.rule_kinds)))]


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The rule's kind, its arity and the number of bins of continuous columns.

    Each task draws the rest itself.
    """
    available = len(relevant_columns(d, drawn))
    kind = draw_kind(rng, config)
    arity = int(rng.integers(*config.rule_arity, endpoint=True))
    many = int(rng.integers(3, _MOST_COLUMNS, endpoint=True))
    bins = int(rng.integers(2, 4, endpoint=True))
    arities = {"equality": 2, "dnf": 4, "terms": _MOST_COLUMNS}
    arities |= {"switch": 3 if many < 6 else 6}
    arities |= {"blocks": many + 4, "multiplexer": 6 if many < 6 else 11}
    arities |= {"logistic": many + 4, "hierarchy": many + 4 if many > 6 else many}
    arity = many if kind in ("count", "points", "tally", "forest") else arities.get(kind, arity)
    if available < 2:
        kind = "conjunction"  # of one condition: all that a single column allows
    return {"kind": kind, "arity": min(arity, available), "bins": bins}


def rule_labels(
    rng: np.random.Generator,
    parameters: dict,
    drawn: dict,
    x: np.ndarray,
    codes: np.ndarray,
    counts: ClassCounts,
) -> tuple[np.ndarray, dict]:
    """is_negative [n] by a random rule over x and its codes, both [n, d], and the rule's facts."""
    relevant = relevant_columns(x.shape[1], drawn)
    holds = RULES[parameters["kind"]]

    @functools.cache
    def coded(column: int) -> np.ndarray:
        if codes[0, column] != CONTINUOUS:
            return codes[:, column]
        return quantile_bins(x[:, column], parameters["bins"])

    def propose(attempt: int):
        # Conditions on many columns may hold too rarely, so read fewer after some attempts.
        arity = max(parameters["arity"] - attempt // _PATIENCE, min(2, parameters["arity"]))
        columns = rng.permutation(relevant)[:arity].tolist()
        read = np.stack([coded(column) for column in columns], axis=1)
        return holds(rng, read, x[:, columns]), sorted(columns)

    return accepted_classes(rng, counts, propose)


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """The bin 0, 1, ... of each value [n]; bins hold equally many rows, except for ties."""
    places = len(values) * np.arange(1, bins) // bins - 1
    cuts = np.partition(values, places)[places]
    return (values[:, None] > cuts).sum(axis=1)


# A rule takes (rng, codes [n, arity], x [n, arity]) and says where it holds.


def equality(rng, codes, x):
    """Two columns have the same code."""
    return codes[:, 0] == codes[:, 1]


def parity(rng, codes, x):
    """An odd number of conditions holds."""
    return np.logical_xor.reduce(_conditions(rng, codes), axis=1)


def count(rng, codes, x):
    """Exactly k columns have a certain code."""
    code = rng.integers(codes.max(initial=0), endpoint=True)
    return (codes == code).sum(axis=1) == rng.integers(1, codes.shape[1], endpoint=True)


def conjunction(rng, codes, x):
    """All conditions hold."""
    return _conditions(rng, codes).all(axis=1)


def disjunction(rng, codes, x):
    """At least one condition holds."""
    return _conditions(rng, codes).any(axis=1)


def dnf(rng, codes, x):
    """One of two or three terms holds."""
    holds = np.zeros(len(codes), dtype=bool)
    for _ in range(rng.integers(2, 3, endpoint=True)):
        pair = codes[:, rng.permutation(codes.shape[1])[:2]]
        alike = rng.random() < 0.3
        holds |= pair[:, 0] == pair[:, 1] if alike else conjunction(rng, pair, x)
    return holds


def points(rng, codes, x):
    """Weighted codes sum to more than a limit."""
    weights = rng.choice([-2, -1, 1, 2, 3], size=codes.shape[1])
    total = codes @ weights
    return total > np.quantile(total, rng.uniform(0.25, 0.75), method="lower")


def product(rng, codes, x):
    """The product of the columns is large."""
    total = np.prod(x, axis=1)
    return total > np.quantile(total, rng.uniform(0.25, 0.75), method="lower")


def tally(rng, codes, x):
    """Exactly k conditions hold, or at least k."""
    held = _conditions(rng, codes).sum(axis=1)
    wanted = rng.integers(1, codes.shape[1], endpoint=True)
    return held == wanted if rng.random() < 0.5 else held >= wanted


def terms(rng, codes, x):
    """One of two to four terms of two to four conditions holds."""
    holds = np.zeros(len(codes), dtype=bool)
    for _ in range(rng.integers(2, 4, endpoint=True)):
        width = rng.integers(2, 4, endpoint=True)
        holds |= conjunction(rng, codes[:, rng.permutation(codes.shape[1])[:width]], x)
    return holds


def switch(rng, codes, x):
    """The conditions on the first columns select which of the other conditions decides."""
    return _selected(_conditions(rng, codes), 1 if codes.shape[1] < 6 else 2)


def blocks(rng, codes, x):
    """One of two to four terms holds; no column is in two of them."""
    parts = np.array_split(_conditions(rng, codes), rng.integers(2, 4, endpoint=True), axis=1)
    terms_of_some = [part[:, :_WIDEST_TERM] for part in parts if part.shape[1]]
    return np.any([term.all(axis=1) for term in terms_of_some], axis=0)


def multiplexer(rng, codes, x):
    """The conditions on the first columns select which of the other conditions decides.

    There are one to three selecting columns, as many as leave enough others to select from. Columns
    beyond those are not read.
    """
    selecting = max([1, *(k for k in (2, 3) if k + 2**k <= codes.shape[1])])
    return _selected(_conditions(rng, codes)[:, : selecting + 2**selecting], selecting)


def logistic(rng, codes, x):
    """A class drawn from a logistic model: columns act additively, and the classes overlap.

    Weights are normals or their cubes; with cubes, few columns matter.
    """
    power = (1, 3)[int(rng.integers(2))]
    total = np.zeros(len(x))
    for column in range(x.shape[1]):
        weight = float(rng.standard_normal()) ** power
        total += weight * _effect(rng, codes[:, column], x[:, column].astype(np.float64))
    return _drawn(rng, total, _STRENGTH)


def forest(rng, codes, x):
    """A class drawn from a sum of trees: columns interact locally, and the classes overlap.

    All trees have the same depth, and leaves have normal values. Weights are as in `logistic`.
    """
    power, depth = (1, 3)[int(rng.integers(2))], int(rng.integers(*_DEPTH, endpoint=True))
    columns = np.arange(x.shape[1])
    total = np.zeros(len(x))
    for _ in range(2 ** int(rng.integers(_DOUBLINGS, endpoint=True))):
        weight = float(rng.standard_normal()) ** power
        leaves, _ = random_leaves(rng, x, columns, depth)
        total += weight * _unit(rng.standard_normal(int(leaves.max()) + 1)[leaves])
    return _drawn(rng, total, _FOREST_STRENGTH)


def hierarchy(rng, codes, x):
    """A grade that combines the columns' grades, two at a time, is high.

    An appraisal combines partial ones like this: both must be good (the worse of two), one strength
    is enough (the better), or they compensate each other (the mean). Each column is reversed with
    probability 1/2, and an intermediate grade has at most five levels.
    """
    grades = [codes[:, column] / max(codes[:, column].max(), 1) for column in range(codes.shape[1])]
    grades = [1 - grade if rng.random() < 0.5 else grade for grade in grades]
    while len(grades) > 1:
        first, second = (grades.pop(int(rng.integers(len(grades)))) for _ in range(2))
        how = ("worse", "better", "mean", "mean", "agreement")[int(rng.integers(5))]
        if how == "worse":
            joined = np.minimum(first, second)
        elif how == "better":
            joined = np.maximum(first, second)
        elif how == "agreement":
            joined = 1 - np.abs(first - second)
        else:
            share = rng.uniform(0.25, 0.75)
            joined = share * first + (1 - share) * second
        # Round half up; round() would round half to even.
        steps = int(rng.integers(1, 4, endpoint=True))
        grades.append(np.floor(joined * steps + 0.5) / steps if len(grades) else joined)
    return grades[0] > np.quantile(grades[0], rng.uniform(0.25, 0.75), method="lower")


RULES = {
    rule.__name__: rule
    for rule in (
        *(equality, parity, count, conjunction, disjunction, dnf, points, product),
        *(tally, terms, switch, blocks, multiplexer, logistic, forest, hierarchy),
    )
}


def _selected(holds: np.ndarray, selecting: int) -> np.ndarray:
    """For each row, one of the conditions after the first `selecting`: bool [n].

    The first `selecting` conditions are the bits of its number.
    """
    chosen, others = holds[:, :selecting] @ (1 << np.arange(selecting)), holds[:, selecting:]
    return others[np.arange(len(holds)), chosen % others.shape[1]]


def _effect(rng: np.random.Generator, codes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The standardised effect [n] of one column; half of all effects are linear."""
    shape = ("straight", "straight", "straight", "saturated", "turning", "levels")[
        int(rng.integers(6))
    ]
    at = float(rng.standard_normal())
    if shape == "saturated":
        x = np.clip(x, at - 1, at + 1)
    elif shape == "turning":
        x = np.abs(x - at)
    elif shape == "levels":
        x = rng.standard_normal(int(codes.max()) + 1)[codes]
    return _unit(x)


def _drawn(
    rng: np.random.Generator, score: np.ndarray, strengths: tuple[float, float]
) -> np.ndarray:
    """Where a score [n], scaled to a random strength, plus logistic noise exceeds a limit."""
    strength = np.exp(rng.uniform(*np.log(strengths)))
    total = strength * _unit(score) + rng.logistic(size=len(score))
    return total > np.quantile(total, rng.uniform(0.25, 0.75), method="lower")


def _unit(values: np.ndarray) -> np.ndarray:
    """Standardise to mean 0 and standard deviation 1; constant values become 0."""
    centred = values - values.mean()
    spread = float(centred.std())
    return centred / spread if spread > 1e-9 else np.zeros(len(values))


def _conditions(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Whether each column's code is in a random set of its codes: bool [n, m].

    The set is neither empty nor complete, except for a column with a single code.
    """
    holds = np.empty(codes.shape, dtype=bool)
    for column in range(codes.shape[1]):
        levels = int(codes[:, column].max()) + 1
        inside = np.zeros(levels, dtype=bool)
        inside[rng.permutation(levels)[: rng.integers(1, max(levels, 2))]] = True
        holds[:, column] = inside[codes[:, column]]
    return holds
