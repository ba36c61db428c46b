"""A fitted ensemble: the network's log-odds of unlabelled rows, and of new rows, by estimator."""

import sys
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import numpy as np

from puicl_config import ProgressReport
from puicl_model.contexts import View
from puicl_model.inference import Job, log_odds, log_odds_of_new
from puicl_model.model import PUICL
from puicl_model.preprocessing import Scaling

# Fewer forward passes than this need no progress bar.
_WORTH_SHOWING = 50


@dataclass(frozen=True)
class Reference:
    """What new rows are scored against: one context of one view.

    rows: [R, w] float32, scaled, in the view's columns, `n_labeled` labelled positives first.
    """

    estimator: int
    scaling: str
    columns: np.ndarray
    n_labeled: int
    rows: np.ndarray


def make_jobs(
    labeled: np.ndarray, unlabeled: np.ndarray, scalings: dict[str, Scaling], view: View
) -> list[Job]:
    """The view's contexts; their rows are scaled only when they are read."""

    def rows(context) -> np.ndarray:
        both = np.concatenate([labeled[context.labeled], unlabeled[context.unlabeled]])
        return np.ascontiguousarray(scalings[view.scaling](both)[:, view.columns])

    return [
        Job(
            len(context.labeled),
            len(context.labeled) + len(context.unlabeled),
            len(view.columns),
            partial(rows, context),
        )
        for context in view.contexts
    ]


def score_unlabeled(
    network: PUICL,
    labeled: np.ndarray,
    unlabeled: np.ndarray,
    scalings: dict[str, Scaling],
    estimators: list[list[View]],
    verbose: bool | None,
) -> np.ndarray:
    """Log-odds [n_estimators, n_u]: each estimator's mean over its views.

    labeled: [P, w] and unlabeled: [n_u, w], unscaled. Every view scores every row once.
    """
    views = [(number, view) for number, views in enumerate(estimators) for view in views]
    jobs = [make_jobs(labeled, unlabeled, scalings, view) for _, view in views]
    flat = [job for part in jobs for job in part]
    if verbose is None:
        verbose = len(flat) >= _WORTH_SHOWING and sys.stderr.isatty()
    if verbose:
        with ProgressReport("puicl", len(flat), "contexts") as progress:
            answers = iter(log_odds(network, flat, progress.advance))
    else:
        answers = iter(log_odds(network, flat))
    total = np.zeros((len(estimators), len(unlabeled)))
    for number, view in views:
        for context in view.contexts:
            total[number, context.unlabeled] += next(answers) / len(estimators[number])
    return total


def keep_references(
    labeled: np.ndarray,
    unlabeled: np.ndarray,
    scalings: dict[str, Scaling],
    estimators: list[list[View]],
) -> list[Reference]:
    """Each view's first context, for rows that come later."""
    kept = []
    for number, views in enumerate(estimators):
        for view in views:
            job = make_jobs(labeled, unlabeled, scalings, view)[0]
            kept.append(Reference(number, view.scaling, view.columns, job.n_labeled, job.rows()))
    return kept


def score_new(
    network: PUICL,
    references: list[Reference],
    scalings: dict[str, Scaling],
    X: np.ndarray,
    batch_rows: int,
) -> np.ndarray:
    """Log-odds [n_estimators, m] of new rows `X` [m, w], each by itself."""
    n_estimators = 1 + max(reference.estimator for reference in references)
    total, count = np.zeros((n_estimators, len(X))), np.zeros((n_estimators, 1))
    for start in range(0, len(X), batch_rows):
        part = slice(start, start + batch_rows)
        scaled = {kind: scaling(X[part]) for kind, scaling in scalings.items()}
        for reference in references:
            total[reference.estimator, part] += log_odds_of_new(
                network,
                reference.rows,
                reference.n_labeled,
                np.ascontiguousarray(scaled[reference.scaling][:, reference.columns]),
                batch_rows,
            )
    for reference in references:
        count[reference.estimator] += 1
    return total / count


def row_keys(X: np.ndarray) -> np.ndarray:
    """[n] 64-bit hashes of the rows: equal rows have equal keys, others almost surely not."""
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in np.ascontiguousarray(X)]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
