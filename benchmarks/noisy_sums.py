"""Compare networks with logistic regression on noisy sums of columns, as in many real tables.

    python benchmarks/noisy_sums.py --models default paper some.safetensors --jobs 2

Classes are drawn from a logistic model of 4 to 11 correlated columns; half of the columns are then
shown only in bins, a fifth on another scale. The signal's standard deviation (the noise has 1.8)
limits what can be known. A third of the positives are labelled; the unlabelled rows are the rest
and as many negatives. `table_kinds.py` explains the measurement.
"""

import numpy as np
from table_kinds import compare, options, seen

from puicl_config import exit_on_input_error

SIGNALS = (0.7, 1.5, 4.0)


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    arguments = options(__doc__.splitlines()[0])
    compare("signal", {str(s): (noisy_sum, int(10 * s), s) for s in SIGNALS}, arguments)


def noisy_sum(rng: np.random.Generator, signal: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw x [n, d] and booleans [n] for positive rows, with 400 to 999 rows."""
    n, d = int(rng.integers(400, 1000)), int(rng.integers(4, 12))
    loadings = rng.normal(0, 0.5, (d, 2))
    x = rng.normal(size=(n, 2)) @ loadings.T + rng.normal(size=(n, d))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    total = x @ rng.normal(size=d)
    total = signal * (total - total.mean()) / total.std() + rng.logistic(size=n)
    positive = total > np.quantile(total, rng.uniform(0.4, 0.7))
    return seen(rng, x, binned=0.5), positive


if __name__ == "__main__":
    main()
