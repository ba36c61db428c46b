"""Standardisation of columns in a fixed order of summation, so that no library affects the bits."""

import numpy as np

from prior_gen.jitted import jit

# A column whose standard deviation is below this share of its largest magnitude is rounding noise.
CONSTANT_COLUMN_TOLERANCE = 1e-6


def standardize(values: np.ndarray, clip: float, rows: np.ndarray | None = None) -> np.ndarray:
    """Scale to zero mean and unit (population) variance along axis 0, and clip to +-`clip`.

    values: [n] or [n, columns]. Constant columns become zero. Moments are summed in float64 over
    all rows in order. The result has the dtype of `values` and holds all rows or, if given, the
    rows with the indices `rows`, in that order.
    """
    rows = np.arange(len(values)) if rows is None else rows
    out = np.empty((len(rows), *values.shape[1:]), values.dtype)  # C order, whatever `values` has
    table, made = values.reshape(len(values), -1), out.reshape(len(rows), -1)
    _standardize(table, rows, clip, CONSTANT_COLUMN_TOLERANCE, made)
    return out


@jit
def _standardize(values, rows, clip, tolerance, out):
    n, columns = values.shape
    mean, variance, largest = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    for i in range(n):
        for j in range(columns):
            value = np.float64(values[i, j])
            mean[j] += value
            largest[j] = max(largest[j], abs(value))
    mean /= n
    for i in range(n):
        for j in range(columns):
            centered = values[i, j] - mean[j]
            variance[j] += centered * centered
    scale = np.zeros(columns)
    for j in range(columns):
        spread = np.sqrt(variance[j] / n)
        if spread > tolerance * largest[j]:
            scale[j] = 1.0 / spread
    for i in range(len(rows)):
        for j in range(columns):
            value = (values[rows[i], j] - mean[j]) * scale[j]
            out[i, j] = min(max(value, -clip), clip)
