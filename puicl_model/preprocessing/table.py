"""`TablePreprocessor`: converts any table to the float64 columns that the network reads."""

import hashlib
from collections.abc import Sequence
from itertools import chain, count
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from puicl_model.preprocessing.choice import Settings, Told, choose
from puicl_model.preprocessing.column_doubts import RARE
from puicl_model.preprocessing.columns import ENCODERS, CategoryColumn, DateColumn
from puicl_model.preprocessing.fit_doubts import fit_doubts
from puicl_model.preprocessing.levels import with_own_levels
from puicl_model.preprocessing.reading import column_names, plain_cells, read_table
from puicl_model.telling import tell

# Most levels that a warning names.
_MOST_NAMED = 5


class TablePreprocessor(TransformerMixin, BaseEstimator):
    """Convert numbers, booleans, text categories and dates to finite float64 columns.

    Labels are not used. Kinds of columns:

    - Text that reads as numbers is numeric; text like 2024-05-31 is dates.
    - Text like 9:30, 9:30 PM, 09:30:15 or 1 day, 2:03:04 is a time of day or a duration (seconds).
    - Text like `10 %`, `$1,234.50`, `18 kg`, `1.234,5` or `31.12.2020` is numbers or dates if all
      cells share one unambiguous notation (`find_spelling.spelling_of`), else a category, with a
      warning.
    - Whole numbers that occur once each, in a column whose name looks like that of an identifier
      (`patient_id`) or as text with leading zeros, are numbers, with a warning.
    - `unknown`, `n.a.`, `#DIV/0!` and the like (`placeholders.is_placeholder`) are missing cells if
      all others are numbers or dates; marks such as `-` only if these others are many, and with a
      warning.

    Left out with a warning, in columns of 20 cells or more: free-form text and names (more than
    half of the cells are distinct) and row numbers (distinct whole numbers without gaps, or with
    gaps in a column without a name or called index). Left out with a warning, too: categories whose
    levels are all rare. Left out silently: empty and constant columns, and columns equal to an
    earlier one.

    Parameters
    ----------
    categorical_features : sequence of int or str, or of bool, or None
        Columns that hold codes of categories, by name or position, or as a mask. A number is always
        a position, even if column names are numbers. Columns of text are only needed here if they
        read as numbers, dates or times.
    one_hot_levels : int
        Categories with up to this many levels make one column per level (with two levels, a single
        column); others make one column of codes. Missing cells count as a level, and so do all rare
        levels together.
    rare_below : int
        Levels with fewer rows than this are rare; they are merged into one level.
    indicator_share : float
        Numbers and dates with at least this share of missing cells get an additional column that is
        1 where the cell is missing. 1 disables this.
    drop_identifiers : bool
        Whether to leave out row numbers and text that names rows. If False, such text is a category
        of the levels that occur in at least `rare_below` rows.

    Attributes
    ----------
    kinds_ : dict
        Maps column names to "number", "category", "date", or the reason for leaving it out.
    levels_ : dict
        Maps names of categories to their levels in the order of their codes, without rare levels.
    spellings_ : dict
        Maps names of columns of numbers and dates in everyday notation to an example cell and the
        value that was read: `("$1,234.50", 1234.5)`.
    dropped_ : dict
        Maps names of columns that are left out to the reason.
    doubts_ : list of str
        The warnings of `fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    def __init__(
        self,
        categorical_features: Sequence[int | str] | None = None,
        one_hot_levels: int = 3,
        rare_below: int = 3,
        indicator_share: float = 0.02,
        drop_identifiers: bool = True,
    ):
        self.categorical_features = categorical_features
        self.one_hot_levels = one_hot_levels
        self.rare_below = rare_below
        self.indicator_share = indicator_share
        self.drop_identifiers = drop_identifiers

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the table `X` [n, d]; `y` is ignored. Emits the warnings in `doubts_`.

        Raises `ValueError` for infinite numbers and other cells that cannot be read, for typing
        errors in columns of numbers or dates, for invalid `categorical_features`, and for anything
        but a table; `TypeError` for sparse matrices.
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """`fit` to `X` [n, d] and return its float64 columns [n, w]; raises what `fit` does."""
        columns = self.fit_quietly(X)
        for doubt in self.doubts_:
            tell(doubt)
        return columns

    def fit_quietly(self, X: Any) -> np.ndarray:
        """`fit_transform` without emitting the warnings; `doubts_` holds them."""
        table = read_table(self, X, reset=True)
        self._names = column_names(self)
        categorical = self._categorical_positions()
        self._encoders, self._kept, self.kinds_, outputs = {}, [], {}, []
        settings = Settings(
            self.one_hot_levels, self.rare_below, self.indicator_share, self.drop_identifiers
        )
        told: dict[str, Told] = {}
        seen: dict[bytes, str] = {}
        blank = np.ones(len(table), dtype=bool)
        for j in table:
            name, column = self._names[j], plain_cells(table[j])
            blank &= column.isna().to_numpy()
            choice = choose(name, column, settings, categorical=j in categorical)
            told[name], encoder = choice.told, choice.encoder
            if encoder is None:
                self.kinds_[name] = choice.left_out
                continue
            self._encoders[j] = encoder
            self.kinds_[name] = encoder.kind
            columns = np.ascontiguousarray(encoder.encode(choice.said).T) + 0.0  # -0.0 is 0.0
            keys = [hashlib.sha256(values.tobytes()).digest() for values in columns]
            fresh = False
            for k, (key, values) in enumerate(zip(keys, columns, strict=True)):
                if key not in seen and values.min() < values.max():
                    seen[key], fresh = name, True
                    self._kept.append((j, k, name + encoder.endings[k]))
                    outputs.append(values)
            if not fresh:
                twin = next((seen[key] for key in keys if key in seen), None)
                rare = isinstance(encoder, CategoryColumn) and not encoder.levels
                self.kinds_[name] = f"equal to {twin}" if twin else RARE if rare else "constant"
                del self._encoders[j]
        self.dropped_ = {name: kind for name, kind in self.kinds_.items() if kind not in ENCODERS}
        encoders = {self._names[j]: encoder for j, encoder in self._encoders.items()}
        self.doubts_ = fit_doubts(encoders, self.dropped_, told, self.rare_below, blank, outputs)
        if not outputs:
            # Constant tables are legal; all their rows get the same single number.
            self._kept = []
            return np.zeros((len(table), 1))
        return np.column_stack(outputs)

    @property
    def levels_(self) -> dict[str, list[str]]:
        """See the class."""
        check_is_fitted(self)
        return {
            self._names[j]: list(encoder.levels)
            for j, encoder in self._encoders.items()
            if isinstance(encoder, CategoryColumn)
        }

    @property
    def spellings_(self) -> dict[str, tuple[str, Any]]:
        """See the class."""
        check_is_fitted(self)
        return {
            self._names[j]: (spelling.example, spelling.of_text(spelling.example))
            for j, encoder in self._encoders.items()
            if (spelling := encoder.spelling) is not None
        }

    def codes_by_count(self) -> dict[int, np.ndarray]:
        """Codes by frequency for output columns with unordered levels, by column number in [w].

        Each array maps a code 0, 1, ... to its rank by frequency, the most frequent first; rare
        levels and missing cells stay last. Columns that share two or more levels with another
        column are omitted, so that a shared level keeps the same code in both. Empty for a loaded
        preprocessor. Raises `NotFittedError` before `fit`.
        """
        check_is_fitted(self)
        coded = {
            j: encoder
            for j, encoder in self._encoders.items()
            if isinstance(encoder, CategoryColumn)
        }
        apart = with_own_levels({j: encoder.levels for j, encoder in coded.items()})
        return {
            place: codes
            for place, (j, _, _) in enumerate(self._kept)
            if j in apart and (codes := coded[j].by_count) is not None
        }

    def transform(self, X: Any) -> np.ndarray:
        """Convert rows `X` [m, d] to columns [m, w] as fitted; rows do not influence each other.

        Warns of levels that the fit has not seen, if it had no rare levels to put them with, and of
        dates with a time zone if the fit's had none, or vice versa. Raises `ValueError` for columns
        that differ from those of the fit, and for cells that are not of their column's kind;
        `NotFittedError` before `fit`; `TypeError` for sparse matrices.
        """
        check_is_fitted(self)
        return self.transform_read(read_table(self, X, reset=False))

    def transform_read(self, table: pd.DataFrame) -> np.ndarray:
        """`transform` of a frame that `read_table` returned after checking its columns."""
        encoded = {}
        for j, encoder in self._encoders.items():
            column = plain_cells(table[j])
            try:
                encoded[j] = encoder.transform(column)
            except (ValueError, OverflowError) as error:
                raise ValueError(f"column {self._names[j]}: {error}") from None
            if isinstance(encoder, CategoryColumn) and (unknown := encoder.unknown(column)):
                named = ", ".join(map(repr, unknown[:_MOST_NAMED]))
                more = len(unknown) - _MOST_NAMED
                tell(
                    f"column {self._names[j]} holds {named}{f' and {more} more' * (more > 0)}, "
                    "which the fit has not seen: these cells carry no information"
                )
            if isinstance(encoder, DateColumn) and encoder.other_clock(column):
                way, there, whose = "with", "have not", "the fit's"
                if encoder.zoned:
                    way, there, whose = "without", "have", "they"
                tell(
                    f"column {self._names[j]} holds dates {way} a time zone, which the fit's "
                    f"{there}: {whose} are read as UTC"
                )
        if not self._kept:
            return np.zeros((len(table), 1))
        return np.column_stack([encoded[j][:, k] for j, k, _ in self._kept]) + 0.0

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Unique names [w] of the columns that `transform` returns."""
        check_is_fitted(self)
        names: dict[str, None] = {}
        for *_, name in self._kept:
            # The name of a level's column may equal that of another column of the table.
            ways = chain([name], (f"{name} ({number})" for number in count(2)))
            names[next(way for way in ways if way not in names)] = None
        return np.array(list(names) or ["(nothing)"], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def state(self) -> dict[str, Any]:
        """Parameters and fitted state as plain data; see `from_state`."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        categorical = self.categorical_features
        return {
            "parameters": {
                **self.get_params(),
                "categorical_features": None if categorical is None else list(categorical),
            },
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else list(names),
            "encoders": {str(j): encoder.state() for j, encoder in self._encoders.items()},
            "kept": [list(kept) for kept in self._kept],
            "kinds": self.kinds_,
            "dropped": self.dropped_,
            "doubts": getattr(self, "doubts_", []),  # missing in pickles of older versions
            "names_in_order": getattr(self, "_names_in_order", None),
            "names": self._names,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Restore a fitted preprocessor from its `state`."""
        self = cls(**state["parameters"])
        self.n_features_in_ = state["n_features_in"]
        if state["feature_names_in"] is not None:
            self.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
        self._names = state.get("names") or column_names(self)
        self._encoders = {
            int(j): ENCODERS[encoder["kind"]].from_state(encoder)
            for j, encoder in state["encoders"].items()
        }
        self._kept = [tuple(kept) for kept in state["kept"]]
        self.kinds_, self.dropped_ = state["kinds"], state["dropped"]
        self.doubts_ = state.get("doubts", [])  # this and the next are missing in older files
        if state.get("names_in_order"):
            self._names_in_order = state["names_in_order"]
        return self

    def _categorical_positions(self) -> set[int]:
        features = [] if self.categorical_features is None else self.categorical_features
        if isinstance(features, str) or not hasattr(features, "__iter__"):
            raise ValueError(
                "categorical_features must be a list of names or positions, or a mask, not "
                f"{features!r}"
            )
        features = list(features)
        if features and all(isinstance(feature, bool | np.bool_) for feature in features):
            if len(features) != self.n_features_in_:
                raise ValueError(
                    f"categorical_features is a mask of {len(features)} columns, but X has "
                    f"{self.n_features_in_}"
                )
            return set(np.flatnonzero(features).tolist())
        positions = set()
        for feature in features:
            if isinstance(feature, str):
                if feature not in self._names:
                    raise ValueError(
                        f"categorical_features names {feature!r}, which X does not have"
                    )
                positions.add(self._names.index(feature))
            elif isinstance(feature, Integral) and 0 <= feature < self.n_features_in_:
                positions.add(int(feature))
            else:
                raise ValueError(
                    f"categorical_features holds {feature!r}, but X has {self.n_features_in_} "
                    f"columns: give names that are text, or positions from 0 to "
                    f"{self.n_features_in_ - 1}"
                )
        return positions
