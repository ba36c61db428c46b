"""Scores of rows that were not in the table: each estimator's log-odds against what it has read."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from threading import Event
from typing import Any

import numpy as np

from puicl_model.contexts import as_seen
from puicl_model.model import PUICL
from puicl_model.own_lock import OwnLock
from puicl_model.plan import Plan
from puicl_model.preprocessing import Scaling
from puicl_model.read_context import KEPT, ReadContext, held_cells
from puicl_model.shown import shown
from puicl_model.side_by_side import side_by_side
from puicl_model.telling import tell

# Fewest cells for which several threads score new rows sooner than one does, if nothing is to be
# read: operations on fewer take less time than threads take to get hold of the interpreter.
_WORTH_THREADS = 3_000


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
        self._locks = [OwnLock() for _ in references]

    def __getstate__(self) -> dict[str, Any]:
        # Contexts are large: reading them again costs less than pickling them.
        state = vars(self) | {"_read": {}, "_has_read": set()}
        del state["_locks"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({"_has_read": set(), "_times_read_again": 0} | state)
        self._locks = [OwnLock() for _ in self.references]

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
        stopped = Event()
        # Progress counts batches, not passes: a single pass over a million rows takes hours.
        starts = range(0, len(X), batch_rows)

        def answers(number: int) -> tuple[int, bool, np.ndarray]:
            reference = self.references[number]
            context, again = self._context(number, keep)
            scaling, found = self.scalings[reference.scaling], np.zeros(len(X))
            for start in starts:
                if stopped.is_set():  # nobody asks any more
                    break
                part = slice(start, start + batch_rows)
                rows = as_seen(scaling, X[part], reference.columns, reference.signs)
                found[part] = _once_each(context, rows)
                done(1)
            return context.n_bytes, again, found

        rows_at_once = min(len(X), batch_rows)
        largest = max(
            (len(each.rows) + rows_at_once) * (len(each.columns) + 1) for each in self.references
        )
        numbers, device = range(len(self.references)), self.network.unlabeled_token.device
        few = not unread and largest < _WORTH_THREADS
        held = held_cells(self.network, largest)
        with (
            shown(verbose, len(numbers) * len(starts), "batches", cells) as done,
            closing(side_by_side(answers, numbers, held, device, 1 if few else None)) as each,
        ):
            try:
                for reference, (n_read, again, found) in zip(self.references, each, strict=True):
                    n_bytes, reads_again = n_bytes + n_read, reads_again or again
                    total[list(reference.estimators)] += found
                    count[list(reference.estimators)] += 1
            finally:
                stopped.set()
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
        with self._locks[number].held():
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


def row_keys(X: np.ndarray) -> np.ndarray:
    """64-bit hashes [n] of the rows X [n, w]; different rows almost surely have different ones."""
    digests = [blake2b(row.tobytes(), digest_size=8).digest() for row in np.ascontiguousarray(X)]
    return np.frombuffer(b"".join(digests), dtype=np.uint64)
