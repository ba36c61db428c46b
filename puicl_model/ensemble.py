"""Scores of a fitted ensemble: each estimator's log-odds for unlabelled rows and for new rows."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, NamedTuple, cast

import numpy as np

from puicl_config import ProgressReport
from puicl_config.speaking import is_terminal
from puicl_model.contexts import as_seen
from puicl_model.inference import Job, Network, log_odds
from puicl_model.model import PUICL
from puicl_model.own_lock import OwnLock
from puicl_model.plan import Plan
from puicl_model.preprocessing import Scaling
from puicl_model.read_context import KEPT, ReadContext
from puicl_model.telling import tell

# Below this many cells (rows times columns, over all passes) no progress is shown: reading them
# takes about ten seconds on one CPU core without AVX-512.
_WORTH_SHOWING = 50_000


@dataclass(frozen=True, eq=False)
class Reference:
    """A context of a view, against which new rows are scored.

    estimators: numbers of the estimators that use the view; rows: [R, w] float32, scaled, with the
    view's columns and signs, the `n_labeled` labelled positives first.
    """

    estimators: tuple[int, ...]
    scaling: str
    columns: np.ndarray
    signs: np.ndarray
    n_labeled: int
    rows: np.ndarray


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
    network: Network, plans: Sequence[Plan], verbose: bool | None, keep: bool = False
) -> list[Scores]:
    """Score the unlabelled rows of each plan; every view scores every row once.

    Contexts of the same shape share forward passes, even across tables. With `keep`, each view's
    first context is read by itself and returned in `Scores.read`; `network` must then be a `PUICL`.
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
    with _shown(verbose, len(readings), "contexts", cells) as done:
        for place, reading in enumerate(readings):
            if keep and reading.is_first:
                job = reading.job
                context = ReadContext(cast(PUICL, network), job.rows(), job.n_labeled)
                reading.scores.read.append(context)
                answers[place] = context.log_odds_of_table()
                done(1)
        rest = [place for place in range(len(readings)) if place not in answers]
        jobs = [readings[place].job for place in rest]
        answers.update(zip(rest, log_odds(network, jobs, done), strict=True))
    for place, reading in enumerate(readings):
        reading.scores.log_odds[reading.cells] += answers[place] / reading.n_views
    return found


def keep_references(plan: Plan) -> list[Reference]:
    """Return each view's first context, against which new rows will be scored."""
    kept = []
    for places, views in plan.runs():
        for view in views:
            job = plan.jobs(view)[0]
            kept.append(
                Reference(
                    tuple(places),
                    view.scaling,
                    view.columns,
                    view.signs,
                    job.n_labeled,
                    job.rows(),
                )
            )
    return kept


class NewRows:
    """Score rows outside the table against the references, each row independently.

    Each context is read at most once per call, whatever the number of rows. What was read stays in
    the cache of the process (`puicl_model.read_context.KEPT`) or, with `keep`, in this object until
    a call without `keep`. Thread-safe: while one thread reads a context, others wait for it.
    """

    def __init__(
        self,
        network: PUICL,
        references: list[Reference],
        scalings: dict[str, Scaling],
        read: Sequence[ReadContext] = (),
    ):
        """read: the references' contexts, if they have been read already."""
        self.network, self.references, self.scalings = network, references, scalings
        self._read = dict(enumerate(read))
        self._has_read: set[int] = set()  # references read before without `keep`
        self._times_read_again = 0
        self._lock = OwnLock()

    def __getstate__(self) -> dict[str, Any]:
        # Contexts are large: reading them again costs less than pickling them.
        state = vars(self) | {"_read": {}, "_has_read": set()}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"_has_read": set(), "_times_read_again": 0} | state)
        self._lock = OwnLock()

    def __call__(
        self, X: np.ndarray, batch_rows: int, verbose: bool | None = None, keep: bool = False
    ) -> np.ndarray:
        """Log-odds [n_estimators, m] of rows `X` [m, w], preprocessed but unscaled."""
        if not keep:
            self.forget()
        n_estimators = 1 + max(max(reference.estimators) for reference in self.references)
        total, count = np.zeros((n_estimators, len(X))), np.zeros((n_estimators, 1))
        unread = sum(
            reference.rows.size
            for number, reference in enumerate(self.references)
            if number not in self._read and reference not in KEPT
        )
        cells = unread + sum(len(X) * len(each.columns) for each in self.references)
        n_bytes, reads_again = 0, False
        # Progress counts batches, not passes: a single pass over a million rows takes hours.
        starts = range(0, len(X), batch_rows)
        with _shown(verbose, len(self.references) * len(starts), "batches", cells) as done:
            for number, reference in enumerate(self.references):
                context, again = self._context(number, keep)
                n_bytes, reads_again = n_bytes + context.n_bytes, reads_again or again
                scaling = self.scalings[reference.scaling]
                for start in starts:
                    part = slice(start, start + batch_rows)
                    rows = as_seen(scaling, X[part], reference.columns, reference.signs)
                    total[list(reference.estimators), part] += _once_each(context, rows)
                    done(1)
                count[list(reference.estimators)] += 1
        self._times_read_again += reads_again
        if reads_again and self._times_read_again == 2:  # once may be chance
            tell(
                f"what the network reads of the table for new rows takes {n_bytes / 1e6:,.0f} MB, "
                f"but all classifiers of a process together keep only {KEPT.most / 1e6:,.0f} MB by "
                "default: this call has read some of it again, and later calls may, too; "
                "keep_context=True keeps all of it"
            )
        return total / count

    def forget(self) -> None:
        """Drop the contexts kept in this object."""
        self._read.clear()

    def _context(self, number: int, keep: bool) -> tuple[ReadContext, bool]:
        """Context of reference `number`, read now if not kept, and whether this read it again."""
        reference = self.references[number]
        read = partial(ReadContext, self.network, reference.rows, reference.n_labeled)
        with self._lock.held():
            if not keep:
                again = number in self._has_read and reference not in KEPT
                self._has_read.add(number)
                return KEPT.get(reference, id(self), read), again
            context = self._read.get(number)
            if context is None:  # moved over from KEPT, so that it is not held twice
                self._read[number] = context = KEPT.take(reference) or read()
            return context, False


def _once_each(context: ReadContext, rows: np.ndarray) -> np.ndarray:
    """`context.log_odds` [m] of `rows` [m, w]; rows that are equal in this view are scored once."""
    different, place = np.unique(rows, axis=0, return_inverse=True)
    if len(different) == len(rows):
        return context.log_odds(rows)
    return context.log_odds(different)[place.ravel()]


@contextmanager
def _shown(
    verbose: bool | None, total: int, unit: str, cells: int
) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes how many more of `total` units are done, to show progress.

    verbose: whether to show it; None shows it on a terminal if `cells`, the number of cells read in
    total, is large.
    """
    if verbose is None:
        verbose = cells >= _WORTH_SHOWING and is_terminal(sys.stderr)
    if not verbose:
        yield lambda n: None
        return
    with ProgressReport("puicl", total, unit) as progress:
        yield progress.advance


def row_keys(X: np.ndarray) -> np.ndarray:
    """64-bit hashes [n] of the rows X [n, w]; different rows almost surely have different ones."""
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in np.ascontiguousarray(X)]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
