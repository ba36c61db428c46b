"""Measure how well labelled rows can be separated from unlabelled ones, and by which columns."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, gamma, rankdata
from sklearn.metrics import roc_auc_score

from puicl_model.ensemble import row_keys

_FOLDS = 5
_MOST_ROWS = 4_000
# Ridge added to the covariance of the standardised columns.
_RIDGE = 0.01
# Error probability of each of the two confidence bounds in `telltale`.
_RARELY = 0.05


def separation(X: np.ndarray, labeled: np.ndarray) -> float:
    """Cross-validated AUC of a linear discriminant between labelled and unlabelled rows.

    X: [n, w], converted to ranks so that no outlier dominates; labeled: boolean [n]. Each of five
    folds is scored by a discriminant fitted to the others. Uses at most `_MOST_ROWS` rows, evenly
    spaced in each class. NaN with fewer than `_FOLDS` rows of a class.

    If labelled positives are a fair sample of the positives, the share of positives among the
    unlabelled rows is at most 2 (1 - AUC) for any score, because half of the pairs of a labelled
    and an unlabelled positive are ranked wrongly.
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
    """A value of a column that occurs in labelled rows but in few unlabelled ones.

    column: number of the column; n_labeled, n_unlabeled: how many rows have the value; at_most:
    upper bound of the share of positives among the unlabelled rows, see `telltale`.
    """

    column: int
    n_labeled: int
    n_unlabeled: int
    at_most: float


def telltale(X: np.ndarray, labeled: np.ndarray) -> Telltale | None:
    """Find the value in X [n, w] with the smallest bound on the unlabelled rows' positive share.

    labeled: boolean [n]. If labelled positives are a fair sample of the positives, a value is as
    frequent among unlabelled positives as among labelled ones. The share of positives among the
    unlabelled rows is then `at_most` the frequency of the value among unlabelled rows divided by
    that among labelled ones, with one-sided 95% confidence bounds in place of both frequencies.
    None if every column has a different value in each row.
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
        # Among values in equally many labelled rows, the one in fewest unlabelled rows is decisive.
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
    """(W'W/n + ridge I)^-1 v [w] for `within` W [n, w] and `apart` v [w]."""
    n, w = within.shape
    if w <= n:
        return np.linalg.solve(within.T @ within / n + _RIDGE * np.eye(w), apart)
    # The same by Woodbury's identity, with an n by n matrix.
    inner = np.linalg.solve(within @ within.T + n * _RIDGE * np.eye(n), within @ apart)
    return (apart - within.T @ inner) / _RIDGE


def copies(X: np.ndarray, labeled: np.ndarray) -> int:
    """Count labelled rows that repeat an earlier labelled row, as oversampling produces.

    X: [n, w], preprocessed; labeled: boolean [n]. Returns 0 if the repeats have another
    explanation: if an unlabelled row equals a repeated one, as in a table with few levels, or if
    the share of repeats among unlabelled rows is at least half as high, as in a joined table.
    """
    keys = row_keys(X)
    different, times = np.unique(keys[labeled], return_counts=True)
    repeated = different[times > 1]
    if np.isin(repeated, keys[~labeled]).any():
        return 0
    n_copies = int(labeled.sum()) - len(different)
    share = 1 - len(np.unique(keys[~labeled])) / max((~labeled).sum(), 1)
    return 0 if share >= n_copies / (2 * labeled.sum()) else n_copies
