"""Scores of a table's unlabelled rows: each estimator's log-odds."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from puicl_model.inference import Job, Network, log_odds
from puicl_model.model import PUICL
from puicl_model.plan import Plan
from puicl_model.read_context import ReadContext, held_cells
from puicl_model.shown import shown
from puicl_model.side_by_side import side_by_side


@dataclass(frozen=True)
class Scores:
    """Result of reading a table once.

    log_odds: [n_estimators, n_u], each estimator's mean over its views; read: the references'
    contexts in the order of `keep_references`, or empty if they were not to be kept.
    """

    log_odds: np.ndarray
    read: list[ReadContext]


class _Reading(NamedTuple):
    """One context of a view, and where its answer goes.

    cells: of `scores.log_odds`, those of the view's estimators and the context's rows; n_views: of
    these estimators; is_first: whether new rows are scored against this context of its view.
    """

    job: Job
    scores: Scores
    cells: tuple[np.ndarray, ...]
    n_views: int
    is_first: bool


def score_unlabeled(
    network: Network,
    plans: Sequence[Plan],
    verbose: bool | None,
    keep: bool = False,
    one_at_a_time: bool = False,
) -> list[Scores]:
    """Score the unlabelled rows of each plan; every view scores every row once.

    Contexts of the same shape share forward passes, even across tables. With `keep`, each view's
    first context is read by itself and returned in `Scores.read`; `network` must then be a `PUICL`.
    one_at_a_time: as for `log_odds`.
    """
    found = [Scores(np.zeros((len(plan.estimators), len(plan.unlabeled))), []) for plan in plans]
    readings = [
        _Reading(
            job,
            scores,
            np.ix_(np.array(estimators), context.unlabeled),
            n_views=len(views),
            is_first=number == 0,
        )
        for plan, scores in zip(plans, found, strict=True)
        for estimators, views in plan.runs()
        for view in views
        for number, (context, job) in enumerate(zip(view.contexts, plan.jobs(view), strict=True))
    ]
    cells = sum(reading.job.n_rows * reading.job.n_columns for reading in readings)
    answers: dict[int, np.ndarray] = {}
    with shown(verbose, len(readings), "contexts", cells) as done:
        if keep:
            firsts = [place for place, reading in enumerate(readings) if reading.is_first]
            jobs = [readings[place].job for place in firsts]
            with closing(_read(cast(PUICL, network), jobs)) as contexts:
                for place, context in zip(firsts, contexts, strict=True):
                    readings[place].scores.read.append(context)
                    answers[place] = context.log_odds_of_table()
                    done(1)
        rest = [place for place in range(len(readings)) if place not in answers]
        jobs = [readings[place].job for place in rest]
        answers.update(zip(rest, log_odds(network, jobs, done, one_at_a_time), strict=True))
    for place, reading in enumerate(readings):
        reading.scores.log_odds[reading.cells] += answers[place] / reading.n_views
    return found


def _read(network: PUICL, jobs: Sequence[Job]) -> Generator[ReadContext, None, None]:
    """The jobs' contexts in order, several of which are read at a time."""

    def read(job: Job) -> ReadContext:
        return ReadContext(network, job.rows(), job.n_labeled)

    device = network.unlabeled_token.device
    largest = max((job.n_cells for job in jobs), default=0)
    return side_by_side(read, jobs, held_cells(network, largest), device)
