"""Seconds of a fit and of a new row's score on cores that have other work, by how threads are used.

    python benchmarks/busy_cores.py --threads 2 --busy 0 1 2

"side by side" is what the classifier does: each of PyTorch's threads computes passes of its own.
"shared": all threads compute each operation together, one pass or batch of passes after another.
"one thread": `n_threads=1`. Other work is processes that multiply matrices, one thread each. Tables
hold random numbers, a quarter of the rows labelled; each figure is the least of some rounds.
"""

import argparse
import multiprocessing
import time
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier, side_by_side

AT_ONCE = side_by_side._CELLS_AT_ONCE


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--busy", type=int, nargs="*", default=[0, 1, 2], help="busy processes")
    parser.add_argument("--shapes", nargs="*", default=["60x6", "300x12"], help="rows x columns")
    parser.add_argument("--estimators", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = {
        "side by side": (options.threads, AT_ONCE),
        "shared": (options.threads, 0),
        "one thread": (1, AT_ONCE),
    }
    print(
        f"| rows x columns | busy processes | {' | '.join(f'fit, {way}' for way in ways)} | "
        f"{' | '.join(f'row, {way}' for way in ways)} |\n|{'---|' * (2 + 2 * len(ways))}"
    )
    for shape in options.shapes:
        n, d = map(int, shape.split("x"))
        rng = np.random.default_rng(0)
        x, s = rng.standard_normal((n, d)), np.arange(n) < n // 4
        for busy in options.busy:
            others = [multiprocessing.Process(target=multiply, daemon=True) for _ in range(busy)]
            for other in others:
                other.start()
            found = []
            for threads, at_once in ways.values():
                side_by_side._CELLS_AT_ONCE = at_once
                classifier = PUICLClassifier(
                    options.model, n_estimators=options.estimators, n_threads=threads
                )
                found.append(of_fit_and_row(classifier, x, s, options.rounds))
            for other in others:
                other.kill()
            fits, rows = zip(*found, strict=True)
            cells = [f"{n} x {d}", busy, *(f"{value:.2f}" for value in (*fits, *rows))]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def multiply() -> None:
    """Keep one core busy."""
    a = np.random.default_rng(0).standard_normal((300, 300))
    with threadpool_limits(1):
        while True:
            a = np.tanh(a @ a)


def of_fit_and_row(classifier: PUICLClassifier, x: np.ndarray, s: np.ndarray, rounds: int):
    """The least seconds of a fit, and of a new row when contexts have been read."""
    fits, rows = [], []
    for _ in range(rounds):
        start = time.perf_counter()
        classifier.fit(x, s)
        fits.append(time.perf_counter() - start)
    for new in np.random.default_rng(1).standard_normal((1 + 3 * rounds, 1, x.shape[1])):
        start = time.perf_counter()
        classifier.predict_proba(new)
        rows.append(time.perf_counter() - start)
    return min(fits), min(rows[1:])  # the first reads the contexts


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    main()
