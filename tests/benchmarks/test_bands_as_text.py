"""Columns of numbers as bands in words."""

import numpy as np
import pandas as pd
import pytest
from bands_as_text import in_bands

from puicl_model.preprocessing.levels import in_order


def test_bands_hold_equally_many_rows_and_say_their_ends():
    numbers = pd.Series([*range(-8, 24), np.nan], index=range(5, 38))
    cells = in_bands(numbers, 4)
    assert list(cells.index) == list(numbers.index)
    assert cells.isna().tolist() == numbers.isna().tolist()
    assert cells.value_counts().tolist() == [8] * 4
    for cell, number in zip(cells.dropna(), numbers.dropna(), strict=True):
        low, high = map(float, cell.split(" to "))
        assert low <= number < high or number == high == 23
    named = in_order(cells.dropna().unique(), cells)
    assert named == sorted(named, key=lambda band: float(band.split()[0]))
    assert named != sorted(named)


@pytest.mark.parametrize("n_bands", [2, 3, 4, 5])
def test_grades_are_as_many_words_from_low_to_high(n_bands):
    numbers = pd.Series(np.arange(60.0))
    cells = in_bands(numbers, n_bands, grades=True)
    named = in_order(cells.unique(), cells)
    assert len(named) == n_bands
    assert set(named) == set(cells)
    if n_bands > 2:  # two are turned round at most
        assert named == list(cells.unique())
