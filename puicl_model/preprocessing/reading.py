"""One form for every kind of table: a pandas frame with columns by position."""

import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data


def read_table(estimator: BaseEstimator, X: Any, *, reset: bool) -> pd.DataFrame:
    """`X` [n, d] as a frame whose columns are 0..d-1 and whose index is 0..n-1.

    Takes numpy arrays, pandas and polars frames, Arrow tables, and nested lists. Sets
    `n_features_in_` and `feature_names_in_` of `estimator` with `reset`, and compares them without.

    Raises `ValueError` for anything that is no table of at least one row and one column, for
    complex numbers, and for other columns than at the fit; `TypeError` for sparse matrices.
    """
    if reset:
        for name in ("_names_in_order", "_names_as_text"):
            vars(estimator).pop(name, None)
    _refuse_no_table(X)
    if _is_polars(X):
        X = _from_polars(X)
    elif type(X).__module__.split(".")[0] == "pyarrow" and hasattr(X, "to_pandas"):
        X = X.to_pandas(types_mapper=_arrow_dtype)
    if isinstance(X, np.ma.MaskedArray):
        X = filled(X)
    if isinstance(X, pd.DataFrame):
        return _read_frame(estimator, X, reset)
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise ValueError("Complex data not supported: give real and imaginary parts as columns")
    with config_context(array_api_dispatch=False):  # which would leave tensors as they are
        array = validate_data(
            estimator, X, reset=reset, dtype=None, ensure_all_finite=False, estimator=estimator
        )
    if array.dtype.kind == "T":  # numpy's text of any length, which pandas has no column of
        array = array.astype(object)
    if array.dtype.kind not in "biufOUSmM":
        raise ValueError(f"X holds {array.dtype}, which is neither numbers, text nor dates")
    return pd.DataFrame(array)


def _read_frame(estimator: BaseEstimator, X: pd.DataFrame, reset: bool) -> pd.DataFrame:
    """`read_table` of a pandas frame."""
    twice = X.columns[X.columns.duplicated()]
    if len(twice):
        raise ValueError(f"X has more than one column {twice[0]!r}: name each differently")
    kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
    if "c" in kinds:
        raise ValueError(f"column {X.columns[kinds.index('c')]}: Complex data not supported")
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except TypeError as error:  # names of which some only are text
        raise ValueError(str(error)) from None
    _check_order(estimator, X.columns, reset)
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"Found array with {X.shape[0]} sample(s) and {X.shape[1]} feature(s) (shape="
            f"{X.shape}) while a minimum of 1 is required."
        )
    if any(isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes):
        raise TypeError("Sparse columns are not supported: give X.sparse.to_dense()")
    table = X.copy(deep=False)
    table.columns = range(X.shape[1])
    table = table.reset_index(drop=True)
    for j, dtype in enumerate(table.dtypes):
        if isinstance(dtype, pd.ArrowDtype):
            table[j] = _from_arrow(table[j])
        elif isinstance(dtype, pd.PeriodDtype):
            table[j] = table[j].dt.to_timestamp()
    return table


def _refuse_no_table(X: Any) -> None:
    """Raise `ValueError` for what is no table, where scikit-learn would print all that it holds."""
    if isinstance(X, pd.Series):
        raise ValueError("Expected a 2-dimensional table, got a Series: give a frame of columns")
    if sparse.issparse(X):  # some of these are dicts; what is said of them is said later
        return
    home = type(X).__module__.split(".")[0]
    known = isinstance(X, pd.DataFrame) or home in ("polars", "pyarrow")
    if not known and hasattr(X, "columns") and hasattr(X, "dtypes"):
        # numpy would make an array of it, with no names to compare and no order of levels.
        raise ValueError(
            f"X is a frame of {home}, whose names and types of columns are not read here: give it "
            "as one of pandas, polars or Arrow, as X.compute() or X.to_pandas() may do"
        )
    rows_of_names = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], dict)
    records = isinstance(X, np.ndarray) and X.dtype.names is not None
    no_table = isinstance(X, str | bytes | PurePath | dict | set | Iterator)
    if X is None or rows_of_names or records or no_table:
        what = "a list of dicts" if rows_of_names else type(X).__name__
        if records:  # what numpy.genfromtxt reads with names
            what = "a structured array"
        named = rows_of_names or records or isinstance(X, dict)
        hint = ": give pandas.DataFrame(X)" if named else ""
        raise ValueError(
            "X must be a table (a pandas or polars frame, an Arrow table, an array, a list of "
            f"rows), not {what}{hint}"
        )


def _check_order(estimator: BaseEstimator, columns: pd.Index, reset: bool) -> None:
    """Raise `ValueError` where names that are no text stand in another order than at the fit.

    scikit-learn compares names only where all are text; a pivot table's are tuples or dates.
    Numbers may be mere positions, so that other ones are no error.
    """
    names = [repr(name) for name in columns.tolist()]
    if reset:
        estimator._names_in_order = names
        if columns.tolist() != list(range(len(columns))):  # those are mere positions
            estimator._names_as_text = [str(name) for name in columns]
        return
    before = getattr(estimator, "_names_in_order", names)
    if names != before and sorted(names) == sorted(before):
        first = next(now for now, then in zip(names, before, strict=True) if now != then)
        raise ValueError(
            f"the columns are those of the fit in another order: {first} is elsewhere there"
        )


def column_names(estimator: BaseEstimator) -> list[str]:
    """The names of the fitted columns, `x0`, `x1`, ... where the table had none.

    Names that are no text, such as a pivot table's, which scikit-learn does not keep, as text.
    """
    names = getattr(estimator, "_names_as_text", getattr(estimator, "feature_names_in_", None))
    if names is None:
        return [f"x{j}" for j in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def _is_polars(X: Any) -> bool:
    if type(X).__module__.split(".")[0] != "polars":
        return False
    if hasattr(X, "collect"):
        raise ValueError("X is a lazy polars frame: give X.collect()")
    return hasattr(X, "get_columns")


def _from_polars(X: Any) -> pd.DataFrame:
    """Column by column, so that pyarrow is not needed."""
    columns = {}
    for column in X.get_columns():
        # Decimals and whole numbers of 128 bits have no numpy type.
        wide = column.dtype.is_decimal() or "128" in str(column.dtype)
        numeric = column.dtype.is_numeric() and not wide
        if numeric and column.null_count() == 0:
            columns[column.name] = column.to_numpy()
        elif (kind := str(column.dtype).split("(")[0]) in ("Categorical", "Enum"):
            # The levels of an Enum have an order, as those of pandas' ordered categoricals.
            levels = column.dtype.categories.to_list() if kind == "Enum" else None
            columns[column.name] = pd.Categorical(column.to_list(), levels, kind == "Enum")
        else:
            values = column.to_list()
            columns[column.name] = pd.Series(values, dtype=float if numeric else object)
            if str(column.dtype).startswith("Duration"):
                columns[column.name] = pd.to_timedelta(columns[column.name])
            if numeric and column.dtype.is_integer():  # beyond 2^53 a float would lose digits
                columns[column.name] = pd.array(
                    values,
                    dtype="UInt64"
                    if min((v for v in values if v is not None), default=0) >= 0
                    else "Int64",
                )
    return pd.DataFrame(columns)


def _arrow_dtype(arrow_type: Any) -> pd.ArrowDtype | None:
    """What pandas makes of an Arrow column; None: its own choice, a categorical of a dictionary."""
    dtype = pd.ArrowDtype(arrow_type)
    return None if _is_dictionary(dtype) else dtype


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    import pyarrow

    return pyarrow.types.is_dictionary(dtype.pyarrow_dtype)


def _from_arrow(column: pd.Series) -> pd.Series:
    """The same cells as pandas' own types: Arrow's numbers take NaN for a value that is there."""
    # pandas cannot turn all views of text and bytes into objects, as which polars hands text over.
    if _is_dictionary(column.dtype) or str(column.dtype).endswith("_view[pyarrow]"):
        return column.array.__arrow_array__().to_pandas()
    own = {"b": "boolean", "i": "Int64", "u": "UInt64", "f": "float64"}
    if column.dtype.kind in own:
        return column.astype(own[column.dtype.kind])
    cells = column.astype(object)
    return pd.to_timedelta(cells) if column.dtype.kind == "m" else cells


_PLANE = [chr(code) for code in range(0x10000)]
# Marks that show nowhere, as pages and exports leave them in cells: zero-width blanks and joiners,
# soft hyphens, byte order marks, directions; around a cell also control characters, such as the
# one that ends a file of DOS.
_UNSEEN = "".join(c for c in _PLANE if unicodedata.category(c) == "Cf")
_AROUND = _UNSEEN + "".join(c for c in _PLANE if c.isspace() or unicodedata.category(c) == "Cc")

# Dashes and quotes as typewriters have them.
_ALIKE = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u2032`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u2033", '"')
)


def look(text: str) -> str:
    """`text` as it reads: one form of letters with accents, of blanks, dashes and quotes."""
    seen = unicodedata.normalize("NFC", "".join(c for c in text if c not in _UNSEEN))
    return " ".join(seen.translate(_ALIKE).split())


# What files write where there is nothing: what pandas takes for it in a CSV file, and "?".
NOTHING = frozenset(
    {"", "?", "NaN", "nan", "-NaN", "-nan", "NA", "<NA>", "#NA", "N/A", "n/a", "#N/A", "#N/A N/A"}
    | {"NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)


def filled(cells: np.ma.MaskedArray) -> np.ndarray:
    """The array with its masked cells missing: NaN among numbers, None elsewhere.

    `MaskedArray.filled` would write None as the array's own fill value, a word that may be a level.
    """
    if cells.dtype.kind in "biuf":
        return np.ma.filled(cells.astype(float), np.nan)
    whole = np.ma.getdata(cells).astype(object)
    whole[np.ma.getmaskarray(cells)] = None
    return whole


def plain_cells(column: pd.Series) -> pd.Series:
    """`column` with no value where a cell says nothing (`is_missing`), and its text plain.

    That is Python's own, without blanks and marks that show nowhere around it: Arrow's text makes
    each cell anew when it is looked at; pandas takes no blanks but ASCII's for a part of a number,
    and Python none that have no width. What reads columns after this asks `isna` alone.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        levels = column.cat.categories
        return column.cat.remove_categories(levels[_are_nothing(levels)])
    if isinstance(column.dtype, pd.StringDtype):
        column = column.astype(object)
    if column.dtype != object:
        return column
    cells = [
        (None if (text := cell.strip(_AROUND)) in NOTHING else text)
        if isinstance(cell, str)
        else cell
        for cell in column.tolist()
    ]
    return pd.Series(cells, column.index, dtype=object)


def is_missing(column: pd.Series) -> np.ndarray:
    """Boolean [n]: where `column` has no value or one of `NOTHING`."""
    missing = column.isna().to_numpy(dtype=bool)
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Where a cell is missing, its code is -1, which takes the last.
        blank = np.append(_are_nothing(column.cat.categories), False)[column.cat.codes.to_numpy()]
    elif column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        blank = _are_nothing(column)
    else:
        return missing
    return missing | blank  # pandas' own array is read-only


def _are_nothing(cells: Iterable[Any]) -> np.ndarray:
    return np.array([isinstance(v, str) and v.strip() in NOTHING for v in cells], dtype=bool)
