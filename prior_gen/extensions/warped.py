"""Warped columns: skewed or heavy-tailed, such as incomes, counts and concentrations.

A warp is a strictly increasing function of the standardised column. Ranks, labels and what a tree
could find stay the same; only the marginal distribution changes.
"""

import numpy as np

from prior_gen import elementary
from puicl_config import ExtensionsConfig

IDENTITY = ["identity", 0.0, 0.0]


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """The warp of each column and its two parameters; discrete columns are not warped."""
    levels = drawn.get("discrete", {}).get("levels", [0] * d)
    chosen = rng.random(d) < rng.uniform(0.2, 1.0)
    chosen[int(rng.integers(d))] = True
    warps = [
        _warp(rng) if chosen[column] and not levels[column] else IDENTITY for column in range(d)
    ]
    return {"warps": warps} if any(warp is not IDENTITY for warp in warps) else None


def warp_columns(parameters: dict, x: np.ndarray, portable: bool) -> np.ndarray:
    """Warp the standardised columns of x [n, d]; returns float64 [n, d], not standardised.

    portable: use the functions of `prior_gen.elementary` instead of numpy's.
    """
    library = elementary if portable else np
    out = x.astype(np.float64)
    for column, (kind, a, b) in enumerate(parameters["warps"]):
        if kind != "identity":
            out[:, column] = WARPS[kind](library, out[:, column], a, b)
    return out


WARPS = {
    # Jones and Pewsey's: a skews, b < 1 makes both tails heavy.
    "sinh_arcsinh": lambda lib, z, a, b: lib.sinh((lib.arcsinh(z) + a) / b),
    # Log-normal-like, with the long tail on the side of a's sign.
    "exp": lambda lib, z, a, b: np.sign(a) * lib.exp(a * z),
    # Powers above 1 stretch both tails; powers below 1 open a gap around the mean.
    "power": lambda lib, z, a, b: (
        np.sign(z) * (np.abs(z) ** a if lib is np else lib.power(np.abs(z), a))
    ),
}


def _warp(rng: np.random.Generator) -> list:
    kind = list(WARPS)[int(rng.integers(len(WARPS)))]
    sign = 1 if rng.random() < 0.7 else -1  # real columns more often have their tail on the right
    a, b = {
        "sinh_arcsinh": (sign * rng.uniform(0, 1), rng.uniform(0.5, 1)),
        "exp": (sign * rng.uniform(0.3, 1.5), 0.0),
        "power": (rng.uniform(0.4, 3), 0.0),
    }[kind]
    return [kind, round(float(a), 4), round(float(b), 4)]


def warped_sample(portable: bool) -> np.ndarray:
    """Values of every warp at fixed places; they differ with another mathematical library."""
    z = np.linspace(-5, 5, 1001, dtype=np.float32)[:, None].repeat(len(WARPS), axis=1)
    return warp_columns({"warps": [[kind, 0.7, 0.6] for kind in WARPS]}, z, portable)
