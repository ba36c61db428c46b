"""Factor models: columns that share a few hidden factors, and a score that depends on all columns.

Examples are sizes of one body, answers to one questionnaire, a patient's blood values. Every column
mixes a few common factors with a part of its own. The score is a function of all columns, or of
their own parts, and depends only weakly on each. An SCM's columns, in contrast, are nodes of a
random network, and its score seldom depends on more than a few of them.
"""

import numpy as np

from prior_gen.activations import activate
from prior_gen.extensions.drawn import log_uniform
from prior_gen.extensions.sums import unit_weights, weighted_sum
from puicl_config import ExtensionsConfig

# Extensions that a factor model replaces: there is no SCM.
REPLACED = frozenset({"shallow", "graph"})
_UNITS = (2, 16)
_GAIN = (0.3, 3.0)
_CLAMP = 100.0  # far beyond where tanh saturates


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Number of factors, their weight in the columns, and what the score is made of."""
    return {
        "factors": int(rng.integers(*config.factors, endpoint=True)),
        "common": round(log_uniform(rng, config.factor_common), 4),
        "score": ("linear", "network")[int(rng.integers(2))],
        "of": ("columns", "own")[int(rng.integers(2))],
    }


def factor_columns(
    rng: np.random.Generator, parameters: dict, n: int, d: int, portable: bool
) -> tuple[np.ndarray, np.ndarray]:
    """x [n, d] and the score [n], float32, not standardised.

    x = `common` F L / sqrt(k) + E, where k factors F [n, k], loadings L [k, d] and the columns' own
    parts E [n, d] are standard normal. The score is a function of z: the columns x divided by their
    standard deviations or, with `of` "own", E alone. The function is a sum weighted by normals or
    by their cubes (then few columns matter), or a network with one hidden layer of 2 to 16 tanh
    units, weighted likewise.
    """
    own = rng.standard_normal((n, d), dtype=np.float32)
    x, variance = own.copy(), np.ones(d)
    common = parameters["common"] / np.sqrt(parameters["factors"])
    for _ in range(parameters["factors"]):
        loadings = common * rng.standard_normal(d)
        factor = rng.standard_normal(n, dtype=np.float32)
        x += factor[:, None] * loadings.astype(np.float32)
        variance += loadings**2
    z = own if parameters["of"] == "own" else x / np.sqrt(variance).astype(np.float32)
    power = (1, 3)[int(rng.integers(2))]
    if parameters["score"] == "linear":
        return x, weighted_sum(z, unit_weights(rng, (d, 1), power))[:, 0]
    units = int(rng.integers(*_UNITS, endpoint=True))
    gain = np.float32(round(log_uniform(rng, _GAIN), 4))
    inner = gain * weighted_sum(z, unit_weights(rng, (d, units), power))
    inner += rng.standard_normal(units, dtype=np.float32)
    bent = activate("tanh", inner, _CLAMP, portable)
    return x, weighted_sum(bent, unit_weights(rng, (units, 1), 1))[:, 0]
