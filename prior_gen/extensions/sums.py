"""Weighted sums of columns with a fixed order of addition.

In a matrix product, that order depends on the processor.
"""

import numpy as np


def unit_weights(rng: np.random.Generator, shape: tuple[int, int], power: int) -> np.ndarray:
    """Draw normal weights or their cubes, float32 [inputs, outputs]; each output has unit norm.

    power: 1 or 3; with cubes (3), few inputs matter.
    """
    weights = rng.standard_normal(shape)
    if power == 3:
        weights = weights * weights * weights
    length = np.sqrt(np.add.accumulate(weights**2, axis=0)[-1])
    return (weights / np.maximum(length, 1e-6)).astype(np.float32)


def weighted_sum(z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Product of z [n, inputs] and weights [inputs, outputs], summed in the order of the inputs."""
    total = np.zeros((len(z), weights.shape[1]), np.float32)
    for column, row in zip(z.T, weights, strict=True):
        total += column[:, None] * row
    return total
