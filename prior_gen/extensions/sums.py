"""Weighted sums of columns whose order of addition is fixed: a matrix product's is for the
processor to choose."""

import numpy as np


def unit_weights(rng: np.random.Generator, shape: tuple[int, int], power: int) -> np.ndarray:
    """Normal weights [inputs, outputs] or their cubes, float32, of unit length for each output.

    power: 1 or 3; of cubes few matter.
    """
    weights = rng.standard_normal(shape)
    if power == 3:
        weights = weights * weights * weights
    length = np.sqrt(np.add.accumulate(weights**2, axis=0)[-1])
    return (weights / np.maximum(length, 1e-6)).astype(np.float32)


def weighted_sum(z: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Z [n, inputs] times weights [inputs, outputs], added up in the order of the inputs."""
    total = np.zeros((len(z), weights.shape[1]), np.float32)
    for column, row in zip(z.T, weights, strict=True):
        total += column[:, None] * row
    return total
