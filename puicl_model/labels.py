"""Parse the labels `s`, in the forms in which people write them, into a mask of positives."""

import contextlib
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from puicl_model.preprocessing import filled, is_missing, look
from puicl_model.telling import tell

# Booleans as CSV files and people write them.
_WORDS = {"True": 1, "true": 1, "TRUE": 1, "False": 0, "false": 0, "FALSE": 0}
# Most labels that an error names.
_MOST_NAMED = 5


def labels_of_rows(s: Any, n_rows: int, positive_label: Any = None) -> np.ndarray:
    """`labeled_mask` [n_rows] of a table's rows, with both labelled and unlabelled ones.

    Raises `ValueError` if `s` is None, has another length or holds only one kind of row, or if
    there is only one row.
    """
    if s is None:
        raise ValueError(
            "s must have one entry per row: fit requires y to be passed, but the target y is None"
        )
    if n_rows == 1:
        raise ValueError("X has 1 sample: give at least one labelled and one unlabelled row")
    labeled = labeled_mask(s, positive_label, warns=True)
    if len(labeled) != n_rows:
        raise ValueError(f"X has {n_rows} rows but s has {len(labeled)} entries")
    if not labeled.any():
        raise ValueError("s holds no labelled positive: mark at least one row with 1")
    if labeled.all():
        raise ValueError("s holds no unlabelled row: there is nothing to classify")
    return labeled


def refuse_another_order(X: Any, s: Any) -> None:
    """Raise `ValueError` if frame `X` and series `s` have the same index in another order.

    Rows are matched by position, as everywhere in scikit-learn, so sorting only one of the two
    would pair rows with the labels of other rows. This only warns if one of the indices is 0, 1,
    ..., because that index may have been reset while the positions are right; or if the two indices
    share only some of their entries and neither is 0, 1, ...
    """
    if not (isinstance(X, pd.DataFrame) and isinstance(s, pd.Series | pd.DataFrame)):
        return
    if X.index.equals(s.index) or not (X.index.is_unique and s.index.is_unique):
        return
    of_rows, of_labels = set(X.index.tolist()), set(s.index.tolist())
    plain = pd.RangeIndex(len(X))
    counts = X.index.equals(plain) or s.index.equals(plain)
    if len(X) != len(s) or of_rows.isdisjoint(of_labels):
        return
    if of_rows != of_labels:
        if not counts:
            tell(
                f"X and s have {len(of_rows & of_labels)} of {len(X)} index entries in common, and "
                "rows are taken by position: align them, as s.loc[X.index] does, or drop the "
                "indices where the positions are right"
            )
        return
    sentence = (
        "X and s have the same index in another order, and rows are taken by position: align them, "
        "as s.loc[X.index] does, or drop the indices where the positions are right"
    )
    if not counts:
        raise ValueError(sentence)
    tell(sentence)


def labeled_mask(
    s: Any, positive_label: Any = None, name: str = "s", warns: bool = False
) -> np.ndarray:
    """Boolean [n]: True where the row is a labelled positive.

    With `positive_label`, that is where `s` equals it; all other rows are unlabelled. Without, it
    is where `s` is 1 or True; 0, -1, False or a missing value (blank text, `?`, NA, a masked cell)
    means unlabelled. `name`: what errors call `s`. `warns`: warn if unlabelled rows come in two
    kinds, one of which may be meant as negative: 0 beside -1 or missing values; with
    `positive_label`, a single other entry beside missing values. It also warns of entries that
    resemble `positive_label`.

    Raises `ValueError` if `s` is not one-dimensional, holds other values, or never equals
    `positive_label`, and `TypeError` if it is a sparse matrix.
    """
    array = _entries(s, name)
    if positive_label is None:
        return _by_number(array, name, warns)
    return _by_label(array, positive_label, name, warns)


def _entries(s: Any, name: str) -> np.ndarray:
    """`s` as an array [n], with masked entries as missing values."""
    if sparse.issparse(s):
        raise TypeError("Sparse labels are not supported: give s.toarray().ravel()")
    if isinstance(s, np.ma.MaskedArray):
        s = filled(s)
    array = np.asarray(s)
    if array.ndim == 2 and array.shape[1] == 1:
        tell("A column-vector y was passed when a 1d array was expected", DataConversionWarning)
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have one entry per row, but its shape is {array.shape}")
    if array.dtype.kind == "T":  # numpy's text of any length
        array = array.astype(object)
    return array


def _by_label(array: np.ndarray, positive_label: Any, name: str, warns: bool) -> np.ndarray:
    """Boolean [n]: where `array` equals `positive_label`.

    The label may itself be text that otherwise means missing, such as a blank or a question mark.
    """
    missing = np.asarray(pd.isna(array))
    labeled = ~missing
    labeled[~missing] = _equal(array[~missing], positive_label)
    if not labeled.any():
        hint = _recoded(array, missing) or _held(array, missing)
        raise ValueError(
            f"{name} holds no labelled positive: no entry equals "
            f"positive_label={positive_label!r}{hint}"
        )
    if warns:
        _tell_of_one_look(name, array[~labeled & ~missing], positive_label)
        nothing = ~labeled & is_missing(pd.Series(array))
        word = _only_word(array[~labeled & ~nothing])
        if nothing.any() and word is not None:
            _tell_two_kinds(name, word, "nothing")
    return labeled


def _by_number(array: np.ndarray, name: str, warns: bool) -> np.ndarray:
    """Boolean [n]: where `array` is 1 or True, in any type.

    Raises `ValueError` for entries other than 1, 0, -1, booleans or missing values.
    """
    missing = is_missing(pd.Series(array))
    if array.dtype.kind in "OUS":
        words = [_WORDS.get(cell, cell) if isinstance(cell, str) else cell for cell in array]
        numbers = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").to_numpy(float)
    elif array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, booleans or text, not {array.dtype}")
    else:
        numbers = array.astype(float)
    known = np.isin(numbers, (1, 0, -1))
    strange = ~known & ~missing
    if strange.any():
        hint = "; for other labels give positive_label="
        if len(np.unique(array[~missing].astype(str))) > 2:
            hint += ". Only binary classification is supported."
        if array.dtype.kind == "f" and (np.round(numbers[strange]) != numbers[strange]).any():
            hint += ", and y must not be continuous"
        raise ValueError(
            f"{name} must hold 1 or True for labelled positives and 0, -1, False or nothing for "
            f"unlabelled rows, but row {int(np.flatnonzero(strange)[0])} holds "
            f"{array[strange].tolist()[0]!r}{hint}"
        )
    for other, what in ((known & (numbers == -1), "-1"), (missing, "nothing")):
        if warns and other.any() and (known & (numbers == 0)).any():
            _tell_two_kinds(name, "0", what)
            break
    return known & (numbers == 1)


def _tell_two_kinds(name: str, first: str, second: str) -> None:
    tell(
        f"{name} holds {first} in some rows and {second} in others: both are taken as unlabelled. "
        "This model cannot use rows known to be negative; leave them out"
    )


def _tell_of_one_look(name: str, entries: np.ndarray, label: Any) -> None:
    """Warn of unlabelled `entries` that look like the positive label, up to case."""
    wanted = look(str(label)).casefold()
    words = Counter(map(str, entries.tolist()))
    alike = [word for word in words if look(word).casefold() == wanted]
    if alike:
        tell(
            f"{name} holds {alike[0]!a} in {sum(words[word] for word in alike)} rows, which reads "
            f"like the positive label, {label!a}, but differs: these rows are taken as "
            "unlabelled; write them alike"
        )


def _only_word(entries: np.ndarray) -> str | None:
    """Text of the value that all `entries` share; None if there are none or they differ.

    If they differ, it is unknown which value stands for negatives.
    """
    words = {str(entry).strip() for entry in entries.tolist()}
    numbers = {_number(word) for word in words}
    if len(numbers) != 1 or (None in numbers and len(words) != 1):
        return None
    number = numbers.pop()
    return repr(words.pop()) if number is None else f"{number:.15g}"


def _recoded(array: np.ndarray, missing: np.ndarray) -> str:
    """A hint if the labels look as if scikit-learn had renumbered them, else an empty string."""
    known = array[~missing]
    if array.dtype.kind not in "iu" or set(np.unique(known)) - {0, 1}:
        return ""
    return (
        "; tools of scikit-learn that number the labels anew (cross_val_predict, voting, stacking) "
        "need 0 and 1 from the start"
    )


def _held(array: np.ndarray, missing: np.ndarray) -> str:
    """Name the labels, if they are few: they may differ from the wanted one by case or a typo."""
    held = sorted({repr(entry) for entry in array[~missing].tolist()})
    return f"; the entries are {', '.join(held)}" if 0 < len(held) <= _MOST_NAMED else ""


def _equal(array: np.ndarray, label: Any) -> np.ndarray:
    """Boolean [n]: whether each entry equals `label` as a value, as stripped text, or as a number.

    Entries are compared one by one, so that "1" equals 1.0 and "1.0" whatever the other labels are:
    parts of one table may spell the label differently.
    """
    text, number = str(label).strip(), _number(label)

    def equal(entry: Any) -> bool:
        if entry == label or str(entry).strip() == text:
            return True
        return number is not None and _number(entry) == number

    return np.array([equal(entry) for entry in array.tolist()], dtype=bool)


def _number(entry: Any) -> int | float | None:
    entry = _WORDS.get(str(entry), entry)
    if "_" in str(entry):  # Python reads "1_000" as a number, but tables do not write that
        return None
    # Try int first: a float would lose the last digits of long whole numbers.
    whole = isinstance(entry, str | int | np.integer)
    for kind in (int, float) if whole else (float,):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            return kind(entry)
    return None
