"""Mirrored tables: all columns change their sign, since the direction of a scale is a convention.

The prior numbers shared codes from the lowest up, and amounts with a floor or a long tail mostly
point upwards. A table whose first grade is the best, or whose rule counts how often the last code
occurs, is the mirror image of such a table.
"""

import numpy as np

from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """Nothing is drawn: all columns of all tasks in the microbatch are mirrored."""
    return {"columns": "all"}
