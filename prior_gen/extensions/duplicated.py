"""Duplicated columns: a length in two units, a sum beside its largest term, a code and its text.

A copy is exact or nearly so. Near copies of a continuous column have added noise; near copies of a
discrete column differ from it in a share of the rows.
"""

import numpy as np

from prior_gen.extensions.drawn import relevant_columns, some_columns
from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict | None:
    """Pairs [original, copy] among the relevant columns, and the noise of the copies."""
    relevant = relevant_columns(d, drawn)
    copies = some_columns(rng, config.duplicated_share, relevant)
    if not copies:
        return None
    originals = np.setdiff1d(relevant, copies)
    pairs = [[int(rng.choice(originals)), copy] for copy in copies]
    noise = 0.0 if rng.random() < 0.5 else round(float(rng.uniform(0.02, 0.4)), 4)
    return {"pairs": pairs, "noise": noise}


def duplicate_columns(
    rng: np.random.Generator, parameters: dict, x: np.ndarray, is_discrete: np.ndarray
) -> None:
    """Overwrite the copies in x [n, d] (standardised) in place; is_discrete: bool [d]."""
    noise = parameters["noise"]
    for original, copy in parameters["pairs"]:
        column = x[:, original].copy()
        if noise and is_discrete[original]:
            strays = rng.random(len(x)) < noise
            column[strays] = rng.permutation(column)[strays]
        elif noise:
            column += noise * rng.standard_normal(len(x), dtype=np.float32)
            column /= np.float32(np.sqrt(1 + noise**2))
        x[:, copy] = column
