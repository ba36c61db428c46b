"""Plan how to read a table: the views of an ensemble's estimators and the scalings they need."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from puicl_model.contexts import (
    LEADING_AXES,
    Context,
    TrainedRange,
    View,
    auto_scalings,
    graded,
    levels_alone,
    plan_views,
    relevance_in,
    turnable,
)
from puicl_model.inference import Job
from puicl_model.preprocessing import RECODED, Recoded, Scaling, fit_scaling, recode


@dataclass(frozen=True)
class Plan:
    """A table and the views in which the network is to read it.

    labeled: [P, w] and unlabeled: [n_u, w], preprocessed but unscaled; estimators: the views of
    each; estimators that cannot differ share one list object.
    """

    labeled: np.ndarray
    unlabeled: np.ndarray
    scalings: dict[str, Scaling]
    estimators: list[list[View]]

    def runs(self) -> list[tuple[list[int], list[View]]]:
        """Each distinct list of views once, after the numbers of the estimators that share it."""
        numbers: dict[int, list[int]] = {}
        for number, views in enumerate(self.estimators):
            numbers.setdefault(id(views), []).append(number)
        return [(places, self.estimators[places[0]]) for places in numbers.values()]

    def jobs(self, view: View) -> list[Job]:
        """One job per context of the view; rows are scaled lazily, when they are read."""

        def rows(context: Context) -> np.ndarray:
            both = [self.labeled[context.labeled], self.unlabeled[context.unlabeled]]
            return view.of(self.scalings[view.scaling], np.concatenate(both))

        return [
            Job(
                len(context.labeled),
                len(context.labeled) + len(context.unlabeled),
                len(view.columns),
                partial(rows, context),
            )
            for context in view.contexts
        ]


def plan_table(
    X: np.ndarray,
    labeled: np.ndarray,
    relevance: np.ndarray,
    *,
    n_estimators: int,
    scalings: str | tuple[str, ...] = "auto",
    columns: str = "random",
    orders_matter: bool,
    trained: TrainedRange,
    rng: np.random.Generator,
    rotations: np.random.Generator,
    recodings: Mapping[int, np.ndarray] | None = None,
) -> Plan:
    """Plan `n_estimators` readings of a preprocessed, finite table X [n, w].

    labeled: boolean [n]; relevance: [w], see `column_relevance`; scalings: used in turn, or "auto"
    for those of `auto_scalings`; recodings: alternative codes of category columns, by column
    number, which half of the estimators see (`Recoded`); the rest as in `plan_views`. `rotations`
    is a generator of its own for random rotations, so that drawing them does not change the column
    orders and contexts of other scalings.
    """
    wide = columns != "all" and X.shape[1] > trained.n_features
    if isinstance(scalings, str):
        scalings = auto_scalings(orders_matter, levels_alone(X), wide)
    turns = tuple(scalings[number % len(scalings)] for number in range(n_estimators))
    leading = LEADING_AXES if wide else ()

    def fit(X: np.ndarray, kind: str) -> Scaling:
        return fit_scaling(X, kind, turns.count(kind), rotations, max(leading, default=None))

    fitted = {kind: fit(X, kind) for kind in dict.fromkeys(turns)}
    estimators = plan_views(
        relevance_in(fitted, X, labeled, relevance),
        int(labeled.sum()),
        int((~labeled).sum()),
        scalings=turns,
        columns=columns,
        orders_matter=orders_matter,
        turnable=turnable(X),
        mirrored=trained.mirrored and graded(X),
        leading=leading,
        trained=trained,
        rng=rng,
    )
    if recodings:
        again = [number for number in range(n_estimators) if _recodes(number, len(scalings))]
        other = recode(X, recodings)
        for kind in dict.fromkeys(turns[number] for number in again):
            fitted[RECODED + kind] = Recoded(recodings, fit(other, kind))
        known: dict[int, list[View]] = {}
        for number in again:
            views = estimators[number]
            estimators[number] = known.setdefault(id(views), [_recoded(v, fitted) for v in views])
        used = {view.scaling for views in estimators for view in views}
        fitted = {kind: scaling for kind, scaling in fitted.items() if kind in used}
    return Plan(X[labeled], X[~labeled], fitted, estimators)


def _recodes(number: int, n_scalings: int) -> bool:
    """Whether estimator `number` sees the alternative codes: two of every four in a scaling do.

    The first estimator never does. The pattern coincides neither with that of mirrored columns
    (every other estimator) nor with that of leading axes (every other one in a scaling).
    """
    return (number + number // n_scalings + number // (2 * n_scalings)) % 2 == 1


def _recoded(view: View, scalings: Mapping[str, Scaling]) -> View:
    """The view with the alternative codes, less principal axes that these do not have."""
    kind = RECODED + view.scaling
    there = view.columns < scalings[kind].width
    return replace(view, scaling=kind, columns=view.columns[there], signs=view.signs[there])
