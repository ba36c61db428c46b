"""The generators and threads that a whole process shares, to see that they stay as they were."""

import random

import numpy as np
import torch


def global_states() -> tuple:
    name, *numpy = np.random.get_state()  # noqa: NPY002
    return (
        random.getstate(),
        (name, numpy[0].tolist(), *numpy[1:]),
        torch.random.get_rng_state().tolist(),
        torch.get_num_threads(),
    )
