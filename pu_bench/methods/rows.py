"""What most methods do to the rows first: bring all columns to one scale."""

import numpy as np


def standardized(P: np.ndarray, U: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P [n_p, d] and U [n_u, d] with mean 0 and standard deviation 1 over the pooled rows.

    Columns that are constant become zero.
    """
    x = np.concatenate([P, U]).astype(float)
    centred = x - x.mean(axis=0)
    scale = centred.std(axis=0)
    constant = scale <= 1e-12 * np.maximum(np.abs(x).max(axis=0), 1e-300)
    x = np.where(constant, 0.0, centred / np.where(constant, 1.0, scale))
    return x[: len(P)], x[len(P) :]
