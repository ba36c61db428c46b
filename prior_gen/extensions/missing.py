"""Missing values: forms left blank, sensors that failed, completely at random within a column.

They are stored as 0, the mean of the standardised column, as mean imputation would fill them. A
shard never holds NaN. The tag holds each column's probability of a missing cell.
"""

import numpy as np

from puicl_config import ExtensionsConfig


def draw(rng: np.random.Generator, config: ExtensionsConfig, d: int, drawn: dict) -> dict:
    """The probability that a cell is missing, for each column; some columns are complete."""
    affected = rng.random(d) < rng.uniform(0.2, 1.0)
    affected[int(rng.integers(d))] = True
    shares = np.where(affected, rng.uniform(*config.missing_share, size=d), 0.0)
    return {"shares": [round(float(share), 4) for share in shares]}


def blank_cells(rng: np.random.Generator, parameters: dict, x: np.ndarray) -> None:
    """Set the missing cells of x [n, d] to 0; in place."""
    x[rng.random(x.shape) < np.array(parameters["shares"])] = 0
