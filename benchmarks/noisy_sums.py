"""Noisy sums of the columns' effects, as in many real tables. Networks beside logistic regression.

    python benchmarks/noisy_sums.py --models default paper some.safetensors --jobs 2

A class is drawn from a logistic model of 4 to 11 correlated columns; half of these are then seen in
bins only, a fifth on another scale. The signal's standard deviation (the noise's is 1.8) says how
much can be known. A third of the positives is labelled; as many negatives as positives are left are
unlabelled too. `table_kinds.py` says what is measured.
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
    """x [n, d] and whether a row is positive [n], for 400 to 999 rows."""
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
