"""A little table whose labelled rows stand among the others."""

import numpy as np

N, D = 24, 3
LABELED = np.zeros(N, dtype=bool)
LABELED[[1, 4, 5, 9, 14, 20, 23]] = True  # interleaved with the unlabelled rows
S = LABELED.astype(int)


def table(seed: int = 0, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, D)) * [1, 5, 0.1] + [0, 3, -1]
