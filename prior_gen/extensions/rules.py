"""Rule-shaped labels: what the MONK's and Car problems are made of, where columns act together.

A rule reads codes: the levels of discrete columns, quantile bins of continuous ones.

equality      two columns have the same code
parity        an odd number of `arity` conditions holds (XOR)
count         exactly so many of `arity` columns have a certain code
conjunction   all of `arity` conditions hold
disjunction   one of them does
dnf           one of two or three terms holds, each an equality or two conditions at once
points        weighted codes of `arity` columns sum to more than a limit, like a score card
product       the product of `arity` standardised columns is large: a smooth interaction
tally         exactly so many of `arity` conditions hold, or at least so many
terms         one of two to four terms holds, each all of two to four conditions
switch        one column, or two, say which of two or four others decides: a multiplexer
blocks        one of two to four terms over columns of their own holds, up to twelve in all
multiplexer   one to three columns say which of two, four or eight others decides
logistic      the effects of up to twelve columns and logistic noise sum to more than a limit
forest        so do the leaves' values of up to sixteen trees over up to eight columns
hierarchy     a grade is high that is made of up to twelve columns' grades, two by two: the worse,
              the better, their mean or how far they agree

The last eight are drawn only where `rule_kinds` names them: older plans keep their tasks.
A condition says that one column's code is in a random set.
"""

import functools

import numpy as np

from prior_gen.extensions.border import ClassCounts
from prior_gen.extensions.discrete import CONTINUOUS
from prior_gen.extensions.drawn import relevant_columns
from prior_gen.extensions.propose import accepted_classes
from prior_gen.extensions.trees import random_leaves
from puicl_config import ExtensionsConfig

_MOST_COLUMNS = 8  # of a count, a tally, a score card, a forest
_WIDEST_TERM = 4  # conditions; more would hold too rarely
# Standard deviations of a logistic model's signal (that of its noise is 1.8): the best possible
# AUC goes from .63 to .99.
_STRENGTH = (0.5, 8.0)
# Of a forest: how often its number of trees doubles at most, how deep each is, and its signal's.
_DOUBLINGS = 4
_DEPTH = (1, 4)
_FOREST_STRENGTH = (1.0, 16.0)
_PATIENCE = 8  # tries before a rule reads one column less


def draw_kind(rng: np.random.Generator, config: ExtensionsConfig) -> str:
    """The rule's kind, which the stream of `rule_labels` begins with."""
    return config.rule_kinds[int(rng.integers(len(config.rule_kinds)))]


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Kind and arity, and into how many bins a continuous column falls; the rest is each task's."""
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
        kind = "conjunction"  # of one condition: all that a single column can carry
    return {"kind": kind, "arity": min(arity, available), "bins": bins}


def rule_labels(
    rng: np.random.Generator,
    parameters: dict,
    drawn: dict,
    x: np.ndarray,
    codes: np.ndarray,
    counts: ClassCounts,
) -> tuple[np.ndarray, dict]:
    """is_negative [n] by a random rule over x and its codes, both [n, d], and its facts."""
    relevant = relevant_columns(x.shape[1], drawn)
    holds = RULES[parameters["kind"]]

    @functools.cache
    def coded(column: int) -> np.ndarray:
        if codes[0, column] != CONTINUOUS:
            return codes[:, column]
        return quantile_bins(x[:, column], parameters["bins"])

    def propose(attempt: int):
        # Conditions of many columns may hold too rarely: read fewer after some tries.
        arity = max(parameters["arity"] - attempt // _PATIENCE, min(2, parameters["arity"]))
        columns = rng.permutation(relevant)[:arity].tolist()
        read = np.stack([coded(column) for column in columns], axis=1)
        return holds(rng, read, x[:, columns]), sorted(columns)

    return accepted_classes(rng, counts, propose)


def quantile_bins(values: np.ndarray, bins: int) -> np.ndarray:
    """0, 1, ... for each value [n]: bins of equally many rows, up to ties."""
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
    """Exactly so many columns have a certain code."""
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
    """So many conditions hold: exactly, or at least."""
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
    """The conditions on the first columns say which of the others' conditions decides."""
    return _selected(_conditions(rng, codes), 1 if codes.shape[1] < 6 else 2)


def blocks(rng, codes, x):
    """One of two to four terms holds, no column in two of them."""
    parts = np.array_split(_conditions(rng, codes), rng.integers(2, 4, endpoint=True), axis=1)
    terms_of_some = [part[:, :_WIDEST_TERM] for part in parts if part.shape[1]]
    return np.any([term.all(axis=1) for term in terms_of_some], axis=0)


def multiplexer(rng, codes, x):
    """The conditions on the first columns say which of the others' conditions decides.

    As many say so as have others enough; columns beyond those are not read.
    """
    selecting = max([1, *(k for k in (2, 3) if k + 2**k <= codes.shape[1])])
    return _selected(_conditions(rng, codes)[:, : selecting + 2**selecting], selecting)


def logistic(rng, codes, x):
    """A logistic model's class, drawn: columns act one by one, and the classes overlap.

    Weights are normal, or their cubes: few columns matter, then.
    """
    power = (1, 3)[int(rng.integers(2))]
    total = np.zeros(len(x))
    for column in range(x.shape[1]):
        weight = float(rng.standard_normal()) ** power
        total += weight * _effect(rng, codes[:, column], x[:, column].astype(np.float64))
    return _drawn(rng, total, _STRENGTH)


def forest(rng, codes, x):
    """A class drawn by a sum of trees: columns act together, here and there, and classes overlap.

    All trees are of one depth; leaves are worth normal values. Weights as of `logistic`.
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
    """A grade made of the columns' grades, two by two, is high: half of the columns count down.

    As an appraisal is made of partial ones: all that matters must be good (the worse of two), one
    strength is enough (the better), or they make up for each other (the mean). A grade in between
    is seen in at most five steps.
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
        # Half up: floor, since round() goes to even numbers.
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
    """Of the columns after the first `selecting`, the one whose number these spell: bool [n]."""
    chosen, others = holds[:, :selecting] @ (1 << np.arange(selecting)), holds[:, selecting:]
    return others[np.arange(len(holds)), chosen % others.shape[1]]


def _effect(rng: np.random.Generator, codes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """What one column adds [n], standardised: half of them are straight lines."""
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
    """Where a score [n] of a drawn strength and logistic noise sum to more than a limit."""
    strength = np.exp(rng.uniform(*np.log(strengths)))
    total = strength * _unit(score) + rng.logistic(size=len(score))
    return total > np.quantile(total, rng.uniform(0.25, 0.75), method="lower")


def _unit(values: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1, or 0 where nothing varies."""
    centred = values - values.mean()
    spread = float(centred.std())
    return centred / spread if spread > 1e-9 else np.zeros(len(values))


def _conditions(rng: np.random.Generator, codes: np.ndarray) -> np.ndarray:
    """Whether each column's code is in a random set of its codes: bool [n, m].

    The set is neither empty nor all of them, but of a column with one code.
    """
    holds = np.empty(codes.shape, dtype=bool)
    for column in range(codes.shape[1]):
        levels = int(codes[:, column].max()) + 1
        inside = np.zeros(levels, dtype=bool)
        inside[rng.permutation(levels)[: rng.integers(1, max(levels, 2))]] = True
        holds[:, column] = inside[codes[:, column]]
    return holds
