"""Choose which rows and columns the network reads together, so that tables may be of any size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from puicl_model.preprocessing import PRINCIPAL, ROTATED, TURNED, Scaling

_MOST_LEVELS = 10  # distinct values of a column that counts as levels

# How many principal axes of a wide table are read; estimators on principal axes alternate between
# the two. Axes are all scaled to the same spread, so that further axes would drown the leading
# ones (benchmarks/made_wide.py).
LEADING_AXES = (10, 5)


def auto_scalings(orders_matter: bool, levels: bool, wide: bool = False) -> tuple[str, ...]:
    """Scalings that the estimators use in turn when `scalings` is "auto".

    orders_matter: whether the network sees the order of columns. levels: whether all columns are
    levels (at most ten values each); then only "quantile" is used, because principal axes and
    rotations mix columns, whereas rules on such tables depend on single values. wide: whether the
    table has more columns than the network reads at once; then half of the passes read leading
    axes. For a network that does not see column order, passes in quantile scaling differ only in
    which columns are negated, so it gets "principal" views of levels as well; rotations were not
    tried with such networks. docs/weights/passes.md and docs/weights/sizes.md report what each
    choice is worth.
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
    """Limits on the size and composition of a table that the network reads at once.

    `n_labeled`, `n_unlabeled`, `n_features`: greatest numbers of labelled and unlabelled rows and
    of columns. `eta`: least and greatest number of unlabelled rows per labelled positive. The
    defaults are the limits of what was measured (`benchmarks/context_shapes.py`,
    `benchmarks/wide_tables.py`): up to them, neither very many nor very few unlabelled rows per
    positive did harm, nor more columns than any training task had. `mirrored`: whether training
    also showed tasks with all columns negated (`prior.extensions.mirrored`).
    """

    n_labeled: int = 300
    n_unlabeled: int = 1000
    n_features: int = 100
    eta: tuple[float, float] = (0.2, 200.0)
    mirrored: bool = False

    @classmethod
    def from_card(cls, card: dict[str, Any]) -> "TrainedRange":
        """Read `trained_range` from a model card; a missing entry or key takes its default.

        For `mirrored`, the default is what the run's configuration in the card says.
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
    """One way to read a table: a scaling, an order of its columns, and rows split into contexts.

    signs: for each of `columns`, 1, or -1 if the column is negated.
    """

    scaling: str
    columns: np.ndarray
    contexts: tuple[Context, ...]
    signs: np.ndarray

    def of(self, scaling: Scaling, X: np.ndarray) -> np.ndarray:
        """The rows X [m, w], scaled, as the network reads them in this view: [m, len(columns)]."""
        return as_seen(scaling, X, self.columns, self.signs)


def as_seen(scaling: Scaling, X: np.ndarray, columns: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Scale the rows X [m, w] and return `columns` in the given order, multiplied by `signs`."""
    scaled = scaling(X, columns)
    return np.ascontiguousarray(scaled * signs.astype(scaled.dtype))


def plan_contexts(
    n_labeled: int, n_unlabeled: int, trained: TrainedRange, rng: np.random.Generator
) -> tuple[Context, ...]:
    """Contexts within `trained` that hold every unlabelled row exactly once.

    If the table lies within the range, there is one context with all rows in their order. Otherwise
    the unlabelled rows are dealt out at random to contexts of nearly equal size. Labelled positives
    are assigned to the contexts cyclically from a random order, so that any two are used equally
    often, or one of them once more.
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
    scalings: Sequence[str],
    columns: str,
    orders_matter: bool,
    turnable: np.ndarray,
    mirrored: bool = False,
    leading: tuple[int, ...] = (),
    trained: TrainedRange,
    rng: np.random.Generator,
) -> list[list[View]]:
    """Return one list of views per estimator; the first reads columns and rows in given order.

    relevance: for each scaling [w], how well each of its columns alone separates labelled from
    unlabelled rows, from 0 to 1. scalings: of each estimator. turnable: boolean [w], columns whose
    sign is arbitrary; estimators after the first negate each of them at random, except in scalings
    of `TURNED` (principal axes and rotations). mirrored: whether every other estimator, from the
    second on, negates all columns, axes and rotations included. leading: numbers of leading
    principal axes that the estimators on axes read in turn; if empty, they read all axes.

    If there are more columns than the network reads at once, an estimator has several views, unless
    `columns` is "all" (`_column_groups`). Each estimator with a scaling of `ROTATED` reads the next
    rotation. Without `orders_matter` (networks that do not see the order of columns), estimators
    that cannot differ share one list object, so that it is run once.
    """
    estimators, taken = [], dict.fromkeys(scalings, 0)
    (coin,) = rng.spawn(1)  # a stream of its own: negating columns does not change the orders
    for number, scaling in enumerate(scalings):
        each = relevance[scaling]
        if leading and scaling in PRINCIPAL:
            each = each[: leading[taken[scaling] % len(leading)]]
        w = len(each)
        order = np.arange(w) if number == 0 else rng.permutation(w)
        groups = _column_groups(order, each, columns, trained.n_features, rng)
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
    return estimators if orders_matter else _shared(estimators, n_labeled)


def _column_groups(
    order: np.ndarray, relevance: np.ndarray, how: str, most: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """The columns of each view of an estimator, at most `most`; one group in `order` [w] if it can.

    With `how` "random", the columns are dealt out at random. With "relevant", each group is drawn
    without replacement, with probability proportional to `relevance` [w] plus a tenth of the
    greatest relevance, so that every column has a chance. With "all", there is one group.
    """
    w = len(order)
    n_groups = 1 if how == "all" else -(-w // most)
    if n_groups == 1:
        return [order]
    if how == "relevant":
        chance = relevance + 0.1 * relevance.max() + 1e-9
        chance /= chance.sum()
        return [rng.choice(w, most, replace=False, p=chance) for _ in range(n_groups)]
    return np.array_split(rng.permutation(w), n_groups)


def _shared(estimators: list[list[View]], n_labeled: int) -> list[list[View]]:
    """The estimators, with one list object for those that differ in the order of columns alone."""
    contexts = [context for views in estimators for view in views for context in view.contexts]
    if len(contexts) > len(estimators) or len(contexts[0].labeled) < n_labeled:
        return estimators  # not all of the table is read at once
    same: dict[tuple, list[View]] = {}
    return [same.setdefault(_without_order(views[0]), views) for views in estimators]


def _without_order(view: View) -> tuple:
    """Key of a view of the whole table that is the same for any order of its columns."""
    order = np.argsort(view.columns)
    return view.scaling, *view.columns[order], *view.signs[order]


def two_valued(X: np.ndarray) -> np.ndarray:
    """Boolean [w]: which columns of `X` [n, w] have exactly two values."""
    low, high = X.min(axis=0), X.max(axis=0)
    return (low < high) & ((low == X) | (high == X)).all(axis=0)


def levels_alone(X: np.ndarray) -> bool:
    """Whether every column of `X` [n, w] has at most ten values: codes, grades, small counts."""
    return all(len(np.unique(x)) <= _MOST_LEVELS for x in X.T)


def turnable(X: np.ndarray) -> np.ndarray:
    """Boolean [w]: two-valued columns of `X` [n, w] whose coding as 0 and 1 is arbitrary.

    All False for a `graded` table: there a code may mean the same in several columns, as "1" does
    in the MONK's problems, and a rule may count how often it occurs.
    """
    return two_valued(X) & (not graded(X))


def graded(X: np.ndarray) -> bool:
    """Whether all columns of `X` [n, w] are levels, and some column has more than two.

    The direction in which levels are numbered is arbitrary, but presumably the same in all columns.
    """
    return levels_alone(X) and not two_valued(X).all()


def relevance_in(
    scalings: Mapping[str, Scaling], X: np.ndarray, labeled: np.ndarray, relevance: np.ndarray
) -> dict[str, np.ndarray]:
    """Relevance of each scaling's columns, as `plan_views` takes it.

    relevance: [w], that of the unscaled columns of X [n, w].
    """
    found = {}
    for kind, scaling in scalings.items():
        if kind in ROTATED:  # each rotated column mixes many: all count as equally relevant
            found[kind] = np.ones(X.shape[1])
        elif kind in TURNED:
            found[kind] = column_relevance(scaling(X), labeled)
        else:  # scaling columns one by one keeps the rank order of rows, hence the AUC
            found[kind] = relevance
    return found


def column_relevance(X: np.ndarray, labeled: np.ndarray, most_rows: int = 20_000) -> np.ndarray:
    """|2 AUC - 1| [w] of each column alone, labelled against unlabelled rows.

    X: [n, w]; labeled: boolean [n]. Uses at most `most_rows` rows of each kind, evenly spaced.
    """
    rows = [np.flatnonzero(labeled), np.flatnonzero(~labeled)]
    rows = [r[:: max(1, len(r) * 2 // most_rows)] for r in rows]
    n_labeled, n_unlabeled = map(len, rows)
    ranks = rankdata(X[np.concatenate(rows)], axis=0)
    auc = (ranks[:n_labeled].sum(axis=0) - n_labeled * (n_labeled + 1) / 2) / (
        n_labeled * n_unlabeled
    )
    return np.abs(2 * auc - 1)
