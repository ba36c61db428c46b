"""How well labelled rows can be told from unlabelled ones by all columns together."""

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

_FOLDS = 5
_MOST_ROWS = 4_000
# Added to each column's variance, in units of it.
_RIDGE = 0.01


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


def _solved(within: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """(W'W/n + ridge)^-1 v for `within` W [n, w] and `apart` v [w]."""
    n, w = within.shape
    if w <= n:
        return np.linalg.solve(within.T @ within / n + _RIDGE * np.eye(w), apart)
    # The same by Woodbury's identity, with a matrix of rows by rows.
    inner = np.linalg.solve(within @ within.T + n * _RIDGE * np.eye(n), within @ apart)
    return (apart - within.T @ inner) / _RIDGE
