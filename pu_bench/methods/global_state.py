"""For packages that draw from global generators: seeded within, and afterwards where they were."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_ONE_AT_A_TIME = threading.RLock()


@contextmanager
def global_generators_seeded(seed: int) -> Iterator[None]:
    """Python's, numpy's and torch's (CPU) global generators at `seed`, restored at the end."""
    with _ONE_AT_A_TIME, torch.random.fork_rng(devices=[]):
        python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        torch.random.default_generator.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
