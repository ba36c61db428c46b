"""A generator whose permutations can be given to the reference."""

import numpy as np


class RecordingGenerator:
    """A generator that keeps every permutation it hands out."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self.permutations = []

    def permutation(self, x):
        self.permutations.append(self._rng.permutation(x))
        return self.permutations[-1]

    def __getattr__(self, name):
        return getattr(self._rng, name)
