"""The bank of ten activation functions (paper, Section 2.1), with fast float32 kernels."""

from collections.abc import Callable

import numpy as np
from scipy.special import erf

from prior_gen import elementary
from prior_gen.jitted import jit

BANK: dict[str, Callable[..., np.ndarray]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: 0.5 * x * (1 + erf(x * 0.5**0.5)),  # exact, x * Phi(x)
    "identity": lambda x: x,
    "sign": np.sign,
    "step": lambda x: (x > 0).astype(x.dtype),
    "rbf": lambda x: np.exp(-np.square(x)),
    "sin": np.sin,
    "square": np.square,
    "abs": np.abs,
}


def activate(name: str, x: np.ndarray, clamp: float, portable: bool) -> np.ndarray:
    """Clamp x to +-`clamp` and apply the activation `name`; x itself is not modified.

    The result has x's shape and dtype. In float32, functions without a transcendental part take a
    single pass, and GELU approximates erf by a rational function. With `portable`, float32 tanh,
    sin and rbf come from `prior_gen.elementary`, whose bits do not depend on the instruction set.
    """
    if x.dtype != np.float32:
        return BANK[name](np.clip(x, -clamp, clamp)).astype(x.dtype)
    out = np.empty(x.shape, x.dtype)
    whole = _PORTABLE.get(name) if portable else None
    kernel = whole or _ONE_PASS.get(name, _clamp)
    kernel(np.ascontiguousarray(x).reshape(-1), np.float32(clamp), out.reshape(-1))
    if whole:
        return out
    if name == "rbf":
        np.exp(out, out=out)
    elif name in ("tanh", "sin"):
        BANK[name](out, out=out)
    return out


@jit
def _clamp(x, clamp, out):
    for i in range(x.size):
        out[i] = min(max(x[i], -clamp), clamp)


@jit
def _relu(x, clamp, out):
    for i in range(x.size):
        out[i] = min(max(x[i], np.float32(0.0)), clamp)


@jit
def _sign(x, clamp, out):
    for i in range(x.size):
        out[i] = np.float32(x[i] > np.float32(0.0)) - np.float32(x[i] < np.float32(0.0))


@jit
def _step(x, clamp, out):
    for i in range(x.size):
        out[i] = np.float32(x[i] > np.float32(0.0))


@jit
def _square(x, clamp, out):
    for i in range(x.size):
        value = min(max(x[i], -clamp), clamp)
        out[i] = value * value


@jit
def _minus_square(x, clamp, out):
    for i in range(x.size):
        value = min(max(x[i], -clamp), clamp)
        out[i] = -(value * value)


@jit
def _abs(x, clamp, out):
    for i in range(x.size):
        out[i] = min(abs(x[i]), clamp)


@jit
def _gelu(x, clamp, out):
    # erf(z) = z P(z^2) / Q(z^2) on |z| <= 4, within 6e-7; beyond that, erf is +-1 in float32.
    for i in range(x.size):
        value = min(max(x[i], -clamp), clamp)
        z = value * np.float32(0.7071067811865476)
        z = min(max(z, np.float32(-4.0)), np.float32(4.0))
        z2 = z * z
        p = np.float32(-2.72614225801306e-10)
        p = p * z2 + np.float32(2.77068142495902e-08)
        p = p * z2 + np.float32(-2.10102402082508e-06)
        p = p * z2 + np.float32(-5.69250639462346e-05)
        p = p * z2 + np.float32(-7.34990630326855e-04)
        p = p * z2 + np.float32(-2.95459980854025e-03)
        p = p * z2 + np.float32(-1.60960333262415e-02)
        q = np.float32(-1.45660718464996e-05)
        q = q * z2 + np.float32(-2.13374055278905e-04)
        q = q * z2 + np.float32(-1.68282697438203e-03)
        q = q * z2 + np.float32(-7.37332916720468e-03)
        q = q * z2 + np.float32(-1.42647390514189e-02)
        out[i] = np.float32(0.5) * value * (np.float32(1.0) + z * p / q)


_PORTABLE = {"tanh": elementary.tanh, "sin": elementary.sin, "rbf": elementary.rbf}
_ONE_PASS = {
    "relu": _relu,
    "gelu": _gelu,
    "sign": _sign,
    "step": _step,
    "rbf": _minus_square,
    "square": _square,
    "abs": _abs,
}
