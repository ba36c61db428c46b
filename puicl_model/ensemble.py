"""A fitted ensemble: the network's log-odds of unlabelled rows, and of new rows, by estimator."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import numpy as np

from puicl_config import ProgressReport
from puicl_model.contexts import as_seen
from puicl_model.inference import Network, log_odds
from puicl_model.model import PUICL
from puicl_model.plan import Plan
from puicl_model.preprocessing import Scaling
from puicl_model.read_context import KEPT, ReadContext

# Fewer cells (rows times columns, over all passes) need no progress bar: some ten seconds of one
# CPU core without AVX-512.
_WORTH_SHOWING = 50_000


@dataclass(frozen=True, eq=False)
class Reference:
    """What new rows are scored against: one context of one view.

    estimators: the numbers of those that have the view; rows: [R, w] float32, scaled, in the view's
    columns and with their signs, `n_labeled` labelled positives first.
    """

    estimators: tuple[int, ...]
    scaling: str
    columns: np.ndarray
    signs: np.ndarray
    n_labeled: int
    rows: np.ndarray


def score_unlabeled(
    network: Network, plans: Sequence[Plan], verbose: bool | None
) -> list[np.ndarray]:
    """For each plan log-odds [n_estimators, n_u]: each estimator's mean over its views.

    Every view scores every row once. Contexts of one shape share forward passes, across tables.
    """
    runs = [(number, *run) for number, plan in enumerate(plans) for run in plan.runs()]
    flat = [job for number, _, views in runs for view in views for job in plans[number].jobs(view)]
    with _shown(verbose, len(flat), sum(job.n_rows * job.n_columns for job in flat)) as done:
        answers = iter(log_odds(network, flat, done))
    totals = [np.zeros((len(plan.estimators), len(plan.unlabeled))) for plan in plans]
    for number, places, views in runs:
        for view in views:
            for context in view.contexts:
                cells = np.ix_(np.array(places), context.unlabeled)
                totals[number][cells] += next(answers) / len(views)
    return totals


def keep_references(plan: Plan) -> list[Reference]:
    """Each view's first context, for rows that come later."""
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
    """Scores rows that were not in the table against the references, each row by itself.

    A context is read once a call, whatever the number of rows; what was read is kept for later
    calls (`puicl_model.read_context.KEPT`).
    """

    def __init__(self, network: PUICL, references: list[Reference], scalings: dict[str, Scaling]):
        self.network, self.references, self.scalings = network, references, scalings

    def __call__(self, X: np.ndarray, batch_rows: int, verbose: bool | None = None) -> np.ndarray:
        """Log-odds [n_estimators, m] of rows `X` [m, w], preprocessed but unscaled."""
        n_estimators = 1 + max(max(reference.estimators) for reference in self.references)
        total, count = np.zeros((n_estimators, len(X))), np.zeros((n_estimators, 1))
        unread = sum(each.rows.size for each in self.references if each not in KEPT)
        cells = unread + sum(len(X) * len(each.columns) for each in self.references)
        with _shown(verbose, len(self.references), cells) as done:
            for reference in self.references:
                read = partial(ReadContext, self.network, reference.rows, reference.n_labeled)
                context = KEPT.get(reference, id(self), read)
                scaling = self.scalings[reference.scaling]
                for start in range(0, len(X), batch_rows):
                    part = slice(start, start + batch_rows)
                    rows = as_seen(scaling, X[part], reference.columns, reference.signs)
                    total[list(reference.estimators), part] += context.log_odds(rows)
                count[list(reference.estimators)] += 1
                done(1)
        return total / count


@contextmanager
def _shown(verbose: bool | None, n_contexts: int, cells: int) -> Iterator[Callable[[int], None]]:
    """A function to tell how many more contexts are done; None: shown where it takes long."""
    if verbose is None:
        verbose = cells >= _WORTH_SHOWING and sys.stderr.isatty()
    if not verbose:
        yield lambda n: None
        return
    with ProgressReport("puicl", n_contexts, "contexts") as progress:
        yield progress.advance


def row_keys(X: np.ndarray) -> np.ndarray:
    """[n] 64-bit hashes of the rows: equal rows have equal keys, others almost surely not."""
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in np.ascontiguousarray(X)]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
