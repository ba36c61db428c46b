"""Which rows and columns the network reads together: tables of any size, part by part."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from puicl_model.preprocessing import PRINCIPAL, ROTATED, TURNED, Scaling

_MOST_LEVELS = 10  # of a column of levels

# How many of a wide table's principal axes are read, by the estimators along them in turn. All of
# them are scaled alike, and further ones drown these (benchmarks/made_wide.py).
LEADING_AXES = (10, 5)


def auto_scalings(orders_matter: bool, levels: bool, wide: bool = False) -> tuple[str, ...]:
    """What the estimators take in turn where scalings are "auto".

    orders_matter: whether the network sees the order of columns. levels: whether the table has
    levels alone; axes and rotations mix columns of which rules read single values. wide: whether
    it has more columns than the network reads at once; then half of the passes read its leading
    axes. To a network that sees no order, passes in quantile scaling differ by what is turned
    alone, so that it has other views of levels, too; rotations were not tried with it.
    docs/weights/passes.md and docs/weights/sizes.md say what each is worth.
    """
    if not orders_matter:
        return ("quantile", "quantile", "quantile", "principal")
    if levels:
        return ("quantile",)
    if wide:
        return ("quantile", "principal", "rotated_quantile", "principal_quantile")
    return ("quantile", "principal", "rotated_quantile", "standard")


@dataclass(frozen=True)
class TrainedRange:
    """How large a table may be that the network reads at once, and how it is composed.

    `eta`: least and greatest number of unlabelled rows for one labelled positive. The defaults
    are as far as was measured (`benchmarks/context_shapes.py`, `benchmarks/wide_tables.py`):
    neither many unlabelled rows for few positives nor few for many did harm, nor more columns than
    any training task had. `mirrored`: whether tasks were shown from the other end, too
    (`prior.extensions.mirrored`).
    """

    n_labeled: int = 300
    n_unlabeled: int = 1000
    n_features: int = 100
    eta: tuple[float, float] = (0.2, 200.0)
    mirrored: bool = False

    @classmethod
    def from_card(cls, card: dict[str, Any]) -> "TrainedRange":
        """From `trained_range` of a model card, where it has one; each key may be missing.

        `mirrored` is then what the run's configuration says.
        """
        prior = (card.get("config") or {}).get("prior") or {}
        shown = (prior.get("extensions") or {}).get("mirrored", 0) > 0
        known = {"mirrored": shown} | {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in card.get("trained_range", {}).items()
            if key in cls.__dataclass_fields__
        }
        return cls(**known)


@dataclass(frozen=True)
class Context:
    """Rows read together: positions among the labelled and among the unlabelled rows."""

    labeled: np.ndarray
    unlabeled: np.ndarray


@dataclass(frozen=True)
class View:
    """One way to look at a table: a scaling, its columns in an order, rows in contexts.

    signs: for each of `columns` 1, or -1 where it is read the other way round.
    """

    scaling: str
    columns: np.ndarray
    contexts: tuple[Context, ...]
    signs: np.ndarray

    def of(self, scaling: Scaling, X: np.ndarray) -> np.ndarray:
        """What of the rows X [m, w], scaled, the network reads, [m, len(columns)]."""
        return as_seen(scaling, X, self.columns, self.signs)


def as_seen(scaling: Scaling, X: np.ndarray, columns: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """These columns of the rows X [m, w], scaled, in this order and with these signs."""
    scaled = scaling(X, columns)
    return np.ascontiguousarray(scaled * signs.astype(scaled.dtype))


def plan_contexts(
    n_labeled: int, n_unlabeled: int, trained: TrainedRange, rng: np.random.Generator
) -> tuple[Context, ...]:
    """Contexts within `trained` that hold every unlabelled row exactly once.

    One context of all rows, in their order, where the table lies within the range. Else the
    unlabelled rows are dealt out at random to contexts of nearly equal size, and each gets
    labelled positives in turn from a random order, so that none is used more than once more often
    than another.
    """
    lowest, highest = trained.eta
    n_positives = min(n_labeled, trained.n_labeled)
    room = min(trained.n_unlabeled, max(int(highest * n_positives), 1))
    n_contexts = -(-n_unlabeled // room)
    n_positives = min(n_positives, max(int(n_unlabeled / n_contexts / lowest), 1))
    if n_contexts == 1 and n_positives == n_labeled:
        return (Context(np.arange(n_labeled), np.arange(n_unlabeled)),)
    unlabeled = np.array_split(rng.permutation(n_unlabeled), n_contexts)
    order, turn = rng.permutation(n_labeled), np.arange(n_positives)
    contexts = [
        Context(np.sort(order[(number * n_positives + turn) % n_labeled]), np.sort(part))
        for number, part in enumerate(unlabeled)
    ]
    return tuple(contexts)


def plan_views(
    relevance: Mapping[str, np.ndarray],
    n_labeled: int,
    n_unlabeled: int,
    *,
    n_estimators: int,
    scalings: tuple[str, ...],
    columns: str,
    orders_matter: bool,
    turnable: np.ndarray,
    mirrored: bool = False,
    leading: tuple[int, ...] = (),
    trained: TrainedRange,
    rng: np.random.Generator,
) -> list[list[View]]:
    """One list of views for each estimator; the first estimator takes columns and rows as given.

    turnable: boolean [w], which columns could as well be the other way round: the estimators after
    the first turn each of them or not at random, but for principal axes and rotations.
    mirrored: whether every other estimator, from the second on, reads all columns, those too, from
    the other end. leading: of principal axes, how many of the first are read, in turn; by default
    all.

    relevance: for each scaling [w], how well each of its columns alone tells labelled from
    unlabelled rows, from 0 to 1. Where there are more columns than the network reads at once, an
    estimator has several views, unless `columns` is "all": with "random", the columns are dealt out
    at random; with "relevant", each view draws columns without replacement, with probability in
    proportion to their relevance (a tenth of the greatest is added to each, so that all have a
    chance). Each estimator in a scaling of `ROTATED` has the columns of the next rotation. Without
    `orders_matter` (networks that do not see the order of columns), estimators that could not
    differ are one and the same list, to be run once.
    """
    estimators, taken = [], dict.fromkeys(scalings, 0)
    (coin,) = rng.spawn(1)  # the orders do not depend on how many columns there are to turn
    for number in range(n_estimators):
        scaling = scalings[number % len(scalings)]
        each = relevance[scaling]
        if leading and scaling in PRINCIPAL:
            each = each[: leading[taken[scaling] % len(leading)]]
        w = len(each)
        n_groups = 1 if columns == "all" else -(-w // trained.n_features)
        order = np.arange(w) if number == 0 else rng.permutation(w)
        if n_groups == 1:
            groups = [order]
        elif columns == "relevant":
            chance = each + 0.1 * each.max() + 1e-9
            size = min(trained.n_features, w)
            groups = [
                rng.choice(w, size, replace=False, p=chance / chance.sum()) for _ in range(n_groups)
            ]
        else:
            groups = np.array_split(rng.permutation(w), n_groups)
        turned = np.zeros(w, dtype=bool)
        if number and scaling not in TURNED:
            turned = turnable & (coin.random(w) < 0.5)
        if mirrored and number % 2:
            turned = ~turned
        signs = np.where(turned, -1.0, 1.0)
        rotation = taken[scaling] if scaling in ROTATED else 0
        taken[scaling] += 1
        estimators.append(
            [
                View(
                    scaling,
                    group + rotation * w,
                    plan_contexts(n_labeled, n_unlabeled, trained, rng),
                    signs[group],
                )
                for group in groups
            ]
        )
    whole = all(len(views) == 1 and len(views[0].contexts) == 1 for views in estimators)
    first = estimators[0][0].contexts[0]
    if whole and not orders_matter and len(first.labeled) == n_labeled:
        same: dict[tuple, list[View]] = {}
        return [same.setdefault(_without_order(views[0]), views) for views in estimators]
    return estimators


def _without_order(view: View) -> tuple:
    """What a network sees of a view of all columns and rows that does not see columns' order."""
    order = np.argsort(view.columns)
    return view.scaling, *view.columns[order], *view.signs[order]


def two_valued(X: np.ndarray) -> np.ndarray:
    """Boolean [w]: columns of `X` [n, w] with two values, which one codes as 0 and 1 or 1 and 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    return (low < high) & ((low == X) | (high == X)).all(axis=0)


def levels_alone(X: np.ndarray) -> bool:
    """Whether every column of `X` [n, w] has at most ten values: codes, grades, small counts."""
    return all(len(np.unique(x)) <= _MOST_LEVELS for x in X.T)


def turnable(X: np.ndarray) -> np.ndarray:
    """Boolean [w]: columns of `X` [n, w] with two values that could as well be coded the other way.

    None in a table of levels alone (at most ten a column) where some columns have more than two:
    there a code may stand for the same in several columns, as "1" does in the MONK's problems, and
    a rule may count how often it occurs.
    """
    return two_valued(X) & (not graded(X))


def graded(X: np.ndarray) -> bool:
    """Whether `X` [n, w] has levels alone, and some columns more than two of them.

    From which end these are numbered, nothing says; but it is the same end for all.
    """
    return levels_alone(X) and not two_valued(X).all()


def relevance_in(
    scalings: Mapping[str, Scaling], X: np.ndarray, labeled: np.ndarray, relevance: np.ndarray
) -> dict[str, np.ndarray]:
    """What `plan_views` takes as `relevance`; `relevance`: [w], that of the columns of X [n, w]."""
    found = {}
    for kind, scaling in scalings.items():
        if kind in ROTATED:  # each mixes many, and is taken to be as relevant as any other
            found[kind] = np.ones(X.shape[1])
        elif kind in TURNED:
            found[kind] = column_relevance(scaling(X), labeled)
        else:  # scaled one by one, columns keep their order of rows
            found[kind] = relevance
    return found


def column_relevance(X: np.ndarray, labeled: np.ndarray, most_rows: int = 20_000) -> np.ndarray:
    """[w]: |2 AUC - 1| of each column alone, labelled against unlabelled rows.

    X: [n, w]; labeled: boolean [n]. Takes up to `most_rows` rows of each class, evenly spaced.
    """
    rows = [np.flatnonzero(labeled), np.flatnonzero(~labeled)]
    rows = [r[:: max(1, len(r) * 2 // most_rows)] for r in rows]
    n_labeled, n_unlabeled = map(len, rows)
    ranks = rankdata(X[np.concatenate(rows)], axis=0)
    auc = (ranks[:n_labeled].sum(axis=0) - n_labeled * (n_labeled + 1) / 2) / (
        n_labeled * n_unlabeled
    )
    return np.abs(2 * auc - 1)
