"""Which columns the answer of a fitted classifier depends on."""

from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from puicl_model.classifier import PUICLClassifier
from puicl_model.preprocessing import read_table
from puicl_model.preprocessing.columns import ENCODERS
from puicl_model.preprocessing.reading import column_names

_SCORES = 1500  # new rows scored over all columns, unless their number is given
_ROWS = (20, 200)
MOST_SHUFFLED = _SCORES // _ROWS[0]


def permutation_importance(
    classifier: PUICLClassifier, X: Any, n_rows: int | None = None
) -> pd.Series:
    """Mean absolute change of P(positive) when a column's cells are shuffled; largest first.

    It needs no labels and says how much the answer depends on a column, not whether it should, nor
    what causes the class. Columns that say the same share what they say between them.

    Parameters
    ----------
    classifier : PUICLClassifier
        A fitted one.
    X : array-like or data frame [m, d]
        Rows to ask about, such as the unlabelled rows of the fit. All are scored as new rows,
        labelled ones as if nothing were known of them.
    n_rows : int, optional
        Use so many evenly spaced rows of `X`, and shuffle every column that the network reads. By
        default 20 to 200, the fewer the more columns there are; if more than 75 are read, all but
        the 75 that alone separate labelled from unlabelled rows best get 0.

    Returns
    -------
    pandas.Series [d]
        By name of the column, or x0, x1, ... if the fit saw no names. Columns that were left out of
        the fit have 0; so have all if there is only one row.

    Raises
    ------
    NotFittedError
        Before `fit`.
    ValueError
        If the columns of `X` are not those of the fit, or `n_rows` is no whole number from 2 on.
    """
    check_is_fitted(classifier)
    if n_rows is not None and not (isinstance(n_rows, Integral) and n_rows > 1):
        raise ValueError(f"n_rows is {n_rows!r}, and must be a whole number from 2 on, or None")
    table = read_table(classifier, X, reset=False)
    read = _to_shuffle(classifier, at_most=MOST_SHUFFLED if n_rows is None else None)
    if n_rows is None:
        n_rows = int(np.clip(_SCORES // max(len(read), 1), *_ROWS))
    sample = table.iloc[:: -(-len(table) // n_rows)].reset_index(drop=True)
    order = np.random.default_rng(0).permutation(len(sample))
    names = X.columns if isinstance(X, pd.DataFrame) else column_names(classifier)
    changes = pd.Series(0.0, index=list(names))
    if read:
        shuffled = [sample.copy() for _ in read]
        for column, rows in zip(read, shuffled, strict=True):
            rows[column] = sample[column].array[order]
        # A single call, so that the context is read once. The unshuffled rows are scored as new
        # rows, too, because their scores from the fit differ even without shuffling.
        together = pd.concat([sample, *shuffled], ignore_index=True)
        asked = _as_given(classifier, X, together)
        answers = expit(classifier._log_odds_of_new(classifier._preprocess(asked, reset=False)))
        before, *after = answers.reshape(-1, len(sample))
        changes.iloc[read] = [np.abs(answer - before).mean() for answer in after]
    return changes.sort_values(ascending=False, kind="stable")


def _as_given(classifier: PUICLClassifier, X: Any, table: pd.DataFrame) -> Any:
    """`table` as the fit's preprocessing expects it: named as `X`, or as the fit, or an array."""
    frame = isinstance(X, pd.DataFrame)
    if hasattr(classifier, "feature_names_in_"):
        return table.set_axis(X.columns if frame else classifier.feature_names_in_, axis=1)
    if not frame:
        return table.to_numpy()
    # Text names were told of by `read_table` if the fit saw none, and would be told of again.
    return (
        table
        if all(isinstance(name, str) for name in X.columns)
        else table.set_axis(X.columns, axis=1)
    )


def _to_shuffle(classifier: PUICLClassifier, at_most: int | None) -> list[int]:
    """Places of the columns to shuffle, of those that the network reads; best alone first."""
    kinds = classifier.report_["columns"]  # empty if the preprocessor says nothing of them
    labels = column_names(classifier)
    read = [j for j, label in enumerate(labels) if not kinds or kinds[label] in ENCODERS]
    if at_most is None or len(read) <= at_most:
        return read
    separation = classifier.report_["column_separation"]
    # A column that became several has no separation of its own, and is put first.
    return sorted(read, key=lambda j: -separation.get(labels[j], 1.0))[:at_most]
