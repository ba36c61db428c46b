"""CPU seconds for many small tables: `fit_many` against a loop of `fit`.

    python benchmarks/many_tables.py --model M.safetensors

Tables hold random numbers, with a quarter of the rows labelled. The two variants take turns; the
fastest time of each counts.
"""

import argparse
import time
import warnings

import numpy as np
import torch
from how_many import count
from real_tables import weights_file

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier, fit_many

SHAPES = ((30, 3), (100, 5), (300, 10))


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--tables", type=count, default=60)
    parser.add_argument("--n-estimators", type=count, nargs="*", default=[1, 16])
    parser.add_argument("--threads", type=count, default=1)
    parser.add_argument("--rounds", type=count, default=2)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    weights_file(options.model)
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    print(f"{options.tables} tables, {options.device}, {options.threads} threads\n")
    print("| rows x columns | n_estimators | loop, ms a table | fit_many | ratio | difference |")
    print("|---|---|---|---|---|---|")
    for n, d in SHAPES:
        rng = np.random.default_rng(0)
        s = np.arange(n) < n // 4
        tables = [(rng.normal(size=(n, d)) + s[:, None], s) for _ in range(options.tables)]
        for n_estimators in options.n_estimators:
            show(options, tables, n_estimators)


def show(options, tables: list[tuple], n_estimators: int) -> None:
    """Measure and print one row."""

    def classifier() -> PUICLClassifier:
        return PUICLClassifier(options.model, n_estimators=n_estimators, device=options.device)

    def loop() -> list[PUICLClassifier]:
        return [classifier().fit(*table) for table in tables]

    def together() -> list[PUICLClassifier]:
        return fit_many(tables, classifier())

    best = {loop: np.inf, together: np.inf}
    answers = {}
    for _ in range(options.rounds):
        for way in best:
            start = time.process_time()
            answers[way] = way()
            best[way] = min(best[way], time.process_time() - start)
    apart = max(
        np.abs(a.unlabeled_proba_ - b.unlabeled_proba_).max()
        for a, b in zip(answers[loop], answers[together], strict=True)
    )
    n, d = tables[0][0].shape
    one, all_at_once = (1e3 * seconds / len(tables) for seconds in best.values())
    print(
        f"| {n} x {d} | {n_estimators} | {one:.0f} | {all_at_once:.0f} | "
        f"{one / all_at_once:.1f} | {apart:.0e} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
