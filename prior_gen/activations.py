"""The bank of ten nonlinearities (paper, Section 2.1). Each keeps its input's dtype."""

from collections.abc import Callable

import numpy as np
from scipy.special import erf


def _gelu(x: np.ndarray) -> np.ndarray:
    # The exact GELU, x * Phi(x).
    half = x.dtype.type(0.5)
    return half * x * (1 + erf(x * x.dtype.type(np.sqrt(0.5))))


BANK: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": _gelu,
    "identity": lambda x: x,
    "sign": np.sign,
    "step": lambda x: (x > 0).astype(x.dtype),
    "rbf": lambda x: np.exp(-np.square(x)),
    "sin": np.sin,
    "square": np.square,
    "abs": np.abs,
}
