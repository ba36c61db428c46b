"""The sources of randomness: local counter-based generators, keyed by their purpose.

Every stream is `Philox`, keyed through `SeedSequence` by (root seed, split, purpose, address).
Hence a task is a pure function of its address, and no stream affects another. There is no global
state.
"""

import functools

import numpy as np
from numpy.random.bit_generator import ISeedSequence

from puicl_config import Split

# Words of the spawn key. Appending is safe; renumbering would change every task.
_SPLITS = {"train": 0, "heldout": 1}
_PURPOSES = {"stage": 0, "microbatch": 1, "task": 2, "extension": 3, "extension_task": 4}


def stage_generator(seed: int, split: Split, stage: int) -> np.random.Generator:
    """Stream of what is drawn once per stage: L_g and h."""
    return _generator(seed, split, "stage", stage)


def microbatch_generator(
    seed: int, split: Split, stage: int, step: int, index: int
) -> np.random.Generator:
    """Stream of the batch factors of microbatch [stage, step, index]."""
    return _generator(seed, split, "microbatch", stage, step, index)


def task_generator(
    seed: int, split: Split, stage: int, step: int, index: int, task: int
) -> np.random.Generator:
    """Stream of one task: its pi, SCM weights, exogenous noise and split.

    Half of Philox's key names the microbatch, the other half the task in it.
    """
    words = np.array([_task_word(seed, split, stage, step, index), task], np.uint64)
    return np.random.Generator(np.random.Philox(_Key(words)))  # type: ignore[arg-type]


class _Key(ISeedSequence):
    """A Philox key that is used as is.

    Given `key=`, numpy would first ask the system for entropy, only to discard it.
    """

    def __init__(self, words: np.ndarray):
        self._words = words

    def generate_state(self, n_words: int, dtype: object = np.uint64) -> np.ndarray:
        """The two 64-bit words that Philox asks for."""
        return self._words


@functools.lru_cache(maxsize=8)
def _task_word(seed: int, split: Split, stage: int, step: int, index: int) -> int:
    key = (_SPLITS[split], _PURPOSES["task"], stage, step, index)
    return int(np.random.SeedSequence(seed, spawn_key=key).generate_state(1, np.uint64)[0])


def extension_generator(
    seed: int, split: Split, extension: int, stage: int, step: int, index: int
) -> np.random.Generator:
    """Stream of what one extension draws for a microbatch.

    `extension` is its number; number 0 is the stream that chooses the extensions.
    """
    return _generator(seed, split, "extension", stage, step, index, extension)


def extension_task_generator(
    seed: int, split: Split, extension: int, stage: int, step: int, index: int, task: int
) -> np.random.Generator:
    """Stream of what one extension draws for one task; it leaves the task's own stream alone."""
    return _generator(seed, split, "extension_task", stage, step, index, task, extension)


def _generator(seed: int, split: Split, purpose: str, *address: int) -> np.random.Generator:
    key = (_SPLITS[split], _PURPOSES[purpose], *address)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=key)))
