"""How well labelled rows can be told from unlabelled ones, and by what."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, gamma, rankdata
from sklearn.metrics import roc_auc_score

from puicl_model.ensemble import row_keys

_FOLDS = 5
_MOST_ROWS = 4_000
# Added to each column's variance, in units of it.
_RIDGE = 0.01
# Each end of what `telltale` takes for possible is beyond it as rarely as this.
_RARELY = 0.05


def separation(X: np.ndarray, labeled: np.ndarray) -> float:
    """AUC of labelled against unlabelled rows, by a linear discriminant that has not seen them.

    X: [n, w], which is ranked first, so that no cell weighs much; labeled: boolean [n]. Each of
    five folds is scored by the direction fitted on the others. Takes about `_MOST_ROWS` rows,
    evenly spaced in each class. NaN with fewer than `_FOLDS` rows of a class.

    If labelled positives are a fair sample of the positives, the share of positives among the
    unlabelled is at most 2 (1 - AUC), whatever scores the rows: half of the pairs of two positives
    are ordered wrongly.
    """
    classes = [np.flatnonzero(labeled), np.flatnonzero(~labeled)]
    if min(map(len, classes)) < _FOLDS:
        return float("nan")
    kept = [rows[:: -(-len(rows) * 2 // _MOST_ROWS)] for rows in classes]
    fold = np.concatenate([np.arange(len(rows)) % _FOLDS for rows in kept])
    rows = np.concatenate(kept)
    z = rankdata(X[rows], axis=0)
    z = (z - z.mean(axis=0)) / np.maximum(z.std(axis=0), 1e-12)
    s = labeled[rows]
    score = np.empty(len(rows))
    for number in range(_FOLDS):
        seen = fold != number
        means = [z[seen & (s == kind)].mean(axis=0) for kind in (True, False)]
        within = np.where(s[seen, None], z[seen] - means[0], z[seen] - means[1])
        score[~seen] = z[~seen] @ _solved(within, means[0] - means[1])
    return float(roc_auc_score(s, score))


@dataclass(frozen=True)
class Telltale:
    """A value of a column that labelled rows have and few unlabelled ones.

    column: the column's number; n_labeled, n_unlabeled: how many rows have the value; at_most: see
    `telltale`.
    """

    column: int
    n_labeled: int
    n_unlabeled: int
    at_most: float


def telltale(X: np.ndarray, labeled: np.ndarray) -> Telltale | None:
    """The value in X [n, w] that leaves the smallest share of positives among unlabelled rows.

    labeled: boolean [n]. If labelled positives are a fair sample of the positives, as large a part
    of the others has the value, and all of these are among the unlabelled rows that have it: their
    share is `at_most` that of the unlabelled rows with the value over that of the labelled ones
    with it, each as far off as chance puts it in one of twenty cases. None where no value stands in
    two rows.
    """
    n_labeled = int(labeled.sum())
    n_unlabeled = len(labeled) - n_labeled
    found = None
    for column in range(X.shape[1]):
        values, place = np.unique(X[:, column], return_inverse=True)
        if len(values) == len(labeled):
            continue
        with_it = np.bincount(place[labeled], minlength=len(values))
        others = np.bincount(place[~labeled], minlength=len(values))
        # Of values that as many labelled rows have, that of the fewest others says most.
        counts, number = np.unique(with_it, return_inverse=True)
        fewest = np.full(len(counts), n_unlabeled)
        np.minimum.at(fewest, number, others)
        counts, fewest = counts[counts > 0], fewest[counts > 0]
        least = beta.ppf(_RARELY, counts, n_labeled - counts + 1)
        most = gamma.ppf(1 - _RARELY, fewest + 1) / n_unlabeled
        at_most = most / least
        best = int(np.argmin(at_most))
        if found is None or at_most[best] < found.at_most:
            found = Telltale(column, int(counts[best]), int(fewest[best]), float(at_most[best]))
    return found


def _solved(within: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """(W'W/n + ridge)^-1 v for `within` W [n, w] and `apart` v [w]."""
    n, w = within.shape
    if w <= n:
        return np.linalg.solve(within.T @ within / n + _RIDGE * np.eye(w), apart)
    # The same by Woodbury's identity, with a matrix of rows by rows.
    inner = np.linalg.solve(within @ within.T + n * _RIDGE * np.eye(n), within @ apart)
    return (apart - within.T @ inner) / _RIDGE


def copies(X: np.ndarray, labeled: np.ndarray) -> int:
    """How many labelled rows equal one before them, as oversampling makes them.

    0 where an unlabelled row equals one of these, as positives of a table of few levels do, or
    where unlabelled rows equal each other half as often, as in a table that was joined.
    X: [n, w], preprocessed; labeled: boolean [n].
    """
    keys = row_keys(X)
    different, times = np.unique(keys[labeled], return_counts=True)
    repeated = different[times > 1]
    if np.isin(repeated, keys[~labeled]).any():
        return 0
    n_copies = int(labeled.sum()) - len(different)
    share = 1 - len(np.unique(keys[~labeled])) / max((~labeled).sum(), 1)
    return 0 if share >= n_copies / (2 * labeled.sum()) else n_copies
