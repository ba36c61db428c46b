"""All columns the other way round: which end of a scale is its first is a convention.

Codes that several columns share are numbered from below, and amounts with a floor or a long tail
point up. A table whose first grade is its best, or whose rule counts how often the last one occurs,
is the mirror image of such a table.
"""

import numpy as np

from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """All columns of all tasks of the microbatch: nothing is drawn."""
    return {"columns": "all"}
