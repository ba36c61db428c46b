"""Seconds and memory for one large table, which is read in many contexts.

    python benchmarks/large_table.py --rows 20000 --columns 20

The table holds random numbers, with one row in twenty labelled; torch uses its default number of
threads. Memory is the peak of the whole process (on Linux), including torch.
"""

import argparse
import resource
import time

import numpy as np
from how_many import count
from real_tables import weights_file

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--rows", type=count, default=20_000)
    parser.add_argument("--columns", type=count, default=20)
    parser.add_argument("--n-estimators", type=count, default=1)
    options = parser.parse_args()
    weights_file(options.model)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((options.rows, options.columns))
    s = rng.random(options.rows) < 0.05
    start = time.perf_counter()
    PUICLClassifier(options.model, n_estimators=options.n_estimators).fit(x, s)
    seconds = time.perf_counter() - start
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{options.rows} x {options.columns}: {seconds:.1f} s, {held:.2f} GB at most")


if __name__ == "__main__":
    main()
