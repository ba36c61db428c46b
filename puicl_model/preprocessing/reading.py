"""Convert every kind of table to one form: a pandas frame with columns by position."""

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
    """Convert `X` [n, d] to a frame whose columns are 0..d-1 and whose index is 0..n-1.

    Accepts numpy arrays, pandas and polars frames, Arrow tables, and nested lists. With `reset`,
    sets `n_features_in_` and `feature_names_in_` of `estimator`; otherwise, compares them.

    Raises `ValueError` for anything but a table with at least one row and one column, for complex
    numbers, for duplicate column names, and for columns that differ from those of the fit;
    `TypeError` for sparse matrices and sparse columns.
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
    with config_context(array_api_dispatch=False):  # dispatch would return tensors unconverted
        array = validate_data(
            estimator, X, reset=reset, dtype=None, ensure_all_finite=False, estimator=estimator
        )
    if array.dtype.kind == "T":  # numpy's variable-length text, which pandas does not support
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
    except TypeError as error:  # only some of the names are text
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
    """Raise `ValueError` if X is not a table; scikit-learn's error would print all its content."""
    if isinstance(X, pd.Series):
        raise ValueError("Expected a 2-dimensional table, got a Series: give a frame of columns")
    if sparse.issparse(X):  # rejected later; some sparse matrices are dicts
        return
    home = type(X).__module__.split(".")[0]
    known = isinstance(X, pd.DataFrame) or home in ("polars", "pyarrow")
    if not known and hasattr(X, "columns") and hasattr(X, "dtypes"):
        # Converting it to a numpy array would lose the names and the order of levels.
        raise ValueError(
            f"X is a frame of {home}, whose names and types of columns are not read here: give it "
            "as one of pandas, polars or Arrow, as X.compute() or X.to_pandas() may do"
        )
    rows_of_names = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], dict)
    records = isinstance(X, np.ndarray) and X.dtype.names is not None
    no_table = isinstance(X, str | bytes | PurePath | dict | set | Iterator)
    if X is None or rows_of_names or records or no_table:
        what = "a list of dicts" if rows_of_names else type(X).__name__
        if records:  # as numpy.genfromtxt returns with names
            what = "a structured array"
        named = rows_of_names or records or isinstance(X, dict)
        hint = ": give pandas.DataFrame(X)" if named else ""
        raise ValueError(
            "X must be a table (a pandas or polars frame, an Arrow table, an array, a list of "
            f"rows), not {what}{hint}"
        )


def _check_order(estimator: BaseEstimator, columns: pd.Index, reset: bool) -> None:
    """Raise `ValueError` if the fit's columns come in another order, even if names are not text.

    scikit-learn compares names only if all are text, but those of a pivot table are tuples or
    dates. Names that differ from the fit's are no error here, since numbers may be mere positions.
    """
    names = [repr(name) for name in columns.tolist()]
    if reset:
        estimator._names_in_order = names
        if columns.tolist() != list(range(len(columns))):  # 0, 1, ... are mere positions
            estimator._names_as_text = [str(name) for name in columns]
        return
    before = getattr(estimator, "_names_in_order", names)
    if names != before and sorted(names) == sorted(before):
        first = next(now for now, then in zip(names, before, strict=True) if now != then)
        raise ValueError(
            f"the columns are those of the fit in another order: {first} is in another place there"
        )


def column_names(estimator: BaseEstimator) -> list[str]:
    """Names of the fitted columns, or `x0`, `x1`, ... if the table had none.

    Names that are not text, such as those of a pivot table, are converted to text; scikit-learn
    does not keep them.
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
    """Convert a polars frame column by column, which does not need pyarrow."""
    columns = {}
    for column in X.get_columns():
        # Decimals and integers of 128 bits have no numpy type.
        wide = column.dtype.is_decimal() or "128" in str(column.dtype)
        numeric = column.dtype.is_numeric() and not wide
        if numeric and column.null_count() == 0:
            columns[column.name] = column.to_numpy()
        elif (kind := str(column.dtype).split("(")[0]) in ("Categorical", "Enum"):
            # An Enum is ordered, like pandas' ordered categoricals.
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
    """The pandas dtype for an Arrow column; None for dictionaries, which become categoricals."""
    dtype = pd.ArrowDtype(arrow_type)
    return None if _is_dictionary(dtype) else dtype


def _is_dictionary(dtype: pd.ArrowDtype) -> bool:
    import pyarrow

    return pyarrow.types.is_dictionary(dtype.pyarrow_dtype)


def _from_arrow(column: pd.Series) -> pd.Series:
    """Convert to pandas' own types, because Arrow's numbers do not treat NaN as missing."""
    # pandas cannot convert all views of text and bytes, in which form polars exports text.
    if _is_dictionary(column.dtype) or str(column.dtype).endswith("_view[pyarrow]"):
        return column.array.__arrow_array__().to_pandas()
    own = {"b": "boolean", "i": "Int64", "u": "UInt64", "f": "float64"}
    if column.dtype.kind in own:
        return column.astype(own[column.dtype.kind])
    cells = column.astype(object)
    return pd.to_timedelta(cells) if column.dtype.kind == "m" else cells


_PLANE = [chr(code) for code in range(0x10000)]
# Invisible characters that web pages and exports leave in cells: zero-width blanks and joiners,
# soft hyphens, byte order marks, text directions. Around a cell also control characters, such as
# the end-of-file mark of DOS.
_UNSEEN = "".join(c for c in _PLANE if unicodedata.category(c) == "Cf")
_AROUND = _UNSEEN + "".join(c for c in _PLANE if c.isspace() or unicodedata.category(c) == "Cc")

# Maps dashes and quotes to their ASCII forms.
_ALIKE = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u2032`\u00b4", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u2033", '"')
)


def look(text: str) -> str:
    """`text` with accents, blanks, dashes and quotes in one form, without invisible characters."""
    seen = unicodedata.normalize("NFC", "".join(c for c in text if c not in _UNSEEN))
    return " ".join(seen.translate(_ALIKE).split())


# Texts that mean a missing cell: those that pandas recognises in CSV files, and "?".
NOTHING = frozenset(
    {"", "?", "NaN", "nan", "-NaN", "-nan", "NA", "<NA>", "#NA", "N/A", "n/a", "#N/A", "#N/A N/A"}
    | {"NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"}
)


def filled(cells: np.ma.MaskedArray) -> np.ndarray:
    """The array with masked cells replaced: by NaN among numbers, else by None.

    `MaskedArray.filled` would use the array's fill value instead, text that may also be a level.
    """
    if cells.dtype.kind in "biuf":
        return np.ma.filled(cells.astype(float), np.nan)
    whole = np.ma.getdata(cells).astype(object)
    whole[np.ma.getmaskarray(cells)] = None
    return whole


def plain_cells(column: pd.Series) -> pd.Series:
    """`column` with text that means missing (`is_missing`) made missing and other text stripped.

    Text becomes Python's str, because Arrow's text creates a new object at each access. Blanks and
    invisible characters around it are stripped, because pandas ignores only ASCII blanks around
    numbers, and Python none of zero width. Later code can rely on `isna` alone.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _plain_levels(column)
    if isinstance(column.dtype, pd.StringDtype):
        column = column.astype(object)
    if column.dtype != object:
        return column
    return pd.Series([_plain_cell(cell) for cell in column.tolist()], column.index, dtype=object)


def _plain_cell(cell: Any) -> Any:
    """A cell as `plain_cells` gives it back."""
    if not isinstance(cell, str):
        return cell
    text = trimmed(cell)
    return None if text in NOTHING else text


def trimmed(text: str) -> str:
    """`text` without the blanks, control and invisible characters around it."""
    return text.strip(_AROUND)


def _plain_levels(column: pd.Series) -> pd.Series:
    """`plain_cells` of a categorical: levels that become equal are one, where the first was."""
    levels = column.cat.categories
    plain = [_plain_cell(level) for level in levels]
    kept = list(dict.fromkeys(level for level in plain if level is not None))
    if kept == levels.tolist():
        return column
    code_of = {level: code for code, level in enumerate(kept)} | {None: -1}
    codes = np.array([code_of[level] for level in plain] + [-1])[column.cat.codes.to_numpy()]
    levels = pd.Index(kept, dtype=levels.dtype)
    return pd.Series(pd.Categorical.from_codes(codes, levels, column.cat.ordered), column.index)


def is_missing(column: pd.Series) -> np.ndarray:
    """Boolean [n]: cells of `column` without a value or with one of `NOTHING`."""
    missing = column.isna().to_numpy(dtype=bool)
    if isinstance(column.dtype, pd.CategoricalDtype):
        # The code of a missing cell is -1, which indexes the appended False.
        blank = np.append(_are_nothing(column.cat.categories), False)[column.cat.codes.to_numpy()]
    elif column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        blank = _are_nothing(column)
    else:
        return missing
    return missing | blank  # pandas' own array is read-only


def _are_nothing(cells: Iterable[Any]) -> np.ndarray:
    return np.array([_plain_cell(cell) is None for cell in cells], dtype=bool)
