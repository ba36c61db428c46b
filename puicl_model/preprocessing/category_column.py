"""The encoder of columns of text and other categories."""

from collections import Counter

import numpy as np
import pandas as pd

from puicl_model.preprocessing.cells import are_numbers, as_words, padded, word
from puicl_model.preprocessing.column import Column
from puicl_model.preprocessing.judging import MIN_ROWS_TO_JUDGE
from puicl_model.preprocessing.levels import have_order, in_order
from puicl_model.preprocessing.reading import trimmed


class CategoryColumn(Column):
    """Text and other categories, as one column per level or as one column of codes.

    Levels follow the order of an ordered pandas categorical, else their meaning (`in_order`). Rare
    levels are merged into one, and missing cells form a level. Two levels make one column of 0 and
    1; up to `one_hot_levels` make a column each; more make one column of codes.

    In new rows, unknown levels count as rare, and so do missing cells if the fit had none. If the
    fit had no rare levels, such cells are encoded neutrally: 0.5 for two levels, the median code
    (which `codes_by_count` recodes like any other), or 0 in each of several columns. A number
    stands for the level that pads it with zeros, if there is only one (`padded`): readers return
    038 as 38 in a batch without other text.
    """

    kind = "category"
    fields = ("levels", "rare", "missing", "one_hot", "fill", "zeros")
    zeros: dict[str, str] | None = None  # older versions took 38 and 038 for two levels
    # For each code, its replacement by decreasing frequency of levels, if these have no order; only
    # set by a fit.
    by_count: np.ndarray | None = None
    # Share of non-missing cells in rare levels, 0 for few cells; only set by a fit.
    rare_share: float = 0.0
    # Whether at least half of the rare levels are numbers; only set by a fit.
    rare_numbers: bool = False

    def __init__(self, column: pd.Series, one_hot_levels: int, rare_below: int):
        words, missing = as_words(column)
        self.zeros = padded(words[~missing & ~are_numbers(column)])
        words = self._with_zeros(words, column)
        known = words[~missing]
        counts = Counter(known.tolist())
        few = len(counts) <= 2
        common = {level: n for level, n in sorted(counts.items()) if n >= rare_below or few}
        self.levels = in_order(common, column)
        # Numbers need no mapping to rare levels, since they count as rare themselves.
        self.zeros = {digits: text for digits, text in self.zeros.items() if text in common}
        self.rare = len(common) < len(counts)
        if len(known) >= MIN_ROWS_TO_JUDGE:
            self.rare_share = (len(known) - sum(common.values())) / len(known)
        if rare := [level for level in counts if level not in common]:
            numbers = pd.to_numeric(pd.Series(rare), errors="coerce").notna()
            self.rare_numbers = bool(numbers.mean() >= 0.5)
        self.missing = bool(missing.any())
        self.one_hot = self._n_codes <= one_hot_levels
        codes = self._codes(words, missing)
        middle = np.sort(codes)[(len(codes) - 1) // 2]
        self.fill = 0.5 if self._n_codes == 2 else float(middle)
        if not self.one_hot and self._n_codes > 2 and not have_order(self.levels, column):
            rows = np.bincount(codes.astype(int))[: len(self.levels)]
            frequent = np.argsort(-rows, kind="stable")
            self.by_count = np.arange(float(self._n_codes))
            self.by_count[frequent] = np.arange(len(self.levels))

    @property
    def _n_codes(self) -> int:
        return len(self.levels) + self.rare + self.missing

    @property
    def endings(self):
        """See `Column`."""
        if not self.one_hot or self._n_codes <= 2:
            return [""]
        rest = [" = (rare)"] * self.rare + [" = (missing)"] * self.missing
        return [f" = {level}" for level in self.levels] + rest

    @classmethod
    def from_state(cls, state):
        """See `Column`."""
        encoder = super().from_state(state)
        # Older versions distinguished 0.10 and 0.1, which `as_words` no longer does, and kept
        # invisible characters around the levels of a categorical, which are no longer read.
        encoder.levels = [word(trimmed(level)) for level in encoder.levels]
        return encoder

    def transform(self, column):
        """See `Column`. Placeholders are kept: in a category they may be levels."""
        return self.encode(column)

    def encode(self, column):
        """See `Column`."""
        words, missing = as_words(column)
        codes = self._codes(self._with_zeros(words, column), missing)
        if not self.one_hot or self._n_codes <= 2:
            return np.where(np.isnan(codes), self.fill, codes)[:, None]
        return (codes[:, None] == np.arange(self._n_codes)).astype(float)

    def unknown(self, column: pd.Series) -> list[str]:
        """Levels of `column` that the fit has not seen; empty if they count as rare."""
        if self.rare:
            return []
        words, missing = as_words(column)
        words = self._with_zeros(words, column)
        return sorted(set(words[~missing].tolist()) - set(self.levels))

    def _with_zeros(self, words: np.ndarray, column: pd.Series) -> np.ndarray:
        """The `words` [n] of `column`, with numbers padded with zeros as in the fit's text."""
        if not self.zeros:
            return words
        cells = zip(words, are_numbers(column), strict=True)
        found = [self.zeros.get(said, said) if number else said for said, number in cells]
        return np.array(found, dtype=object)

    def _codes(self, words: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Codes [n]: 0, 1, ... for the levels, then rare, then missing; NaN if none applies."""
        rare = len(self.levels) if self.rare else np.nan
        code_of = {level: code for code, level in enumerate(self.levels)}
        codes = np.array([code_of.get(word, rare) for word in words.tolist()], dtype=float)
        return np.where(missing, len(self.levels) + self.rare if self.missing else rare, codes)
