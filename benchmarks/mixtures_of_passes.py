"""Which scalings the passes of an ensemble should be in, and how many there should be.

    python benchmarks/mixtures_of_passes.py --model default --data DIR --splits 2 --out passes.csv

Every table of a folder (as `compare_networks.py` has them) is read in eight passes in quantile
scaling and four in each other one of `KINDS`, or, where it has levels alone, in sixteen in quantile
scaling; mixtures are means of log-odds over some of these. "2 2 2 2" is two of each of the first
four kinds; of levels alone all eight are in quantile scaling. Means over tables of AUC, accuracy,
|error of the share of positives| and Brier score; behind +-, the standard error over tables and
splits of the difference from the first mixture.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from compare_networks import FIGURES, digest, figures_of
from real_tables import measured, read_split, table_names
from scipy.special import expit

from puicl_model import PUICLClassifier
from puicl_model.contexts import levels_alone
from puicl_model.preprocessing import TablePreprocessor

KINDS = (
    *("quantile", "principal", "rotated_quantile", "standard", "principal_quantile", "rotated"),
    *("uniform", "principal_uniform", "rotated_uniform"),
)
_MOST = {"quantile": 8}
_EACH = 4
_LEVELS = 16
MIXTURES = (
    *((6, 2), (1,), (0, 0, 0, 1), (1, 1), (1, 1, 1), (3, 1), (2, 1, 0, 0, 1), (1, 1, 1, 1)),
    *((8,), (4, 0, 0, 4), (4, 2, 0, 0, 2), (4, 0, 4), (4, 2, 2), (2, 2, 2, 2), (2, 2, 0, 2, 0, 2)),
    *((2, 4, 4, 4, 0, 0, 2), (2, 4, 2, 4, 0, 0, 2, 0, 2), (2, 2, 2, 4, 0, 0, 2, 2, 2)),
    *((2, 1, 0, 3, 2), (8, 4, 0, 0, 4), (4, 4, 4, 4), (4, 4, 0, 4, 0, 4), (4, 4, 0, 4, 4)),
)
KEY = ["weights", "table", "split", "levels", "mixture"]


def main() -> None:
    """Measure and print two Markdown tables: tables of measurements, and all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="CSV of every figure; what it holds is kept")
    arguments = parser.parse_args()
    weights = digest(arguments.model)
    cells = [
        (weights, name, split)
        for split in range(arguments.splits)
        for name in table_names(arguments.data)
    ]
    measure_one = partial(measure, arguments.data, arguments.model)
    frame = measured(arguments.out, KEY, FIGURES, cells, measure_one, arguments.jobs)
    frame = frame[(frame["weights"] == weights) & (frame["split"] < arguments.splits)]
    show("tables of measurements", frame[~frame["levels"].astype(bool)])
    show("all tables", frame)


def measure(data: Path, model: str, weights: str, name: str, split: int) -> list[tuple]:
    """(levels alone, mixture, figures) of each mixture on one split of one table."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(data, name, split)

    def passes(kind: str, n: int) -> np.ndarray:
        """[n, n_u] log-odds."""
        fitted = PUICLClassifier(model, n_estimators=n, scalings=(kind,), random_state=split)
        return fitted.fit(x, s).estimator_log_odds_

    levels = levels_alone(TablePreprocessor().fit_quietly(x))
    if levels:
        found = [passes("quantile", _LEVELS)]
    else:
        found = [passes(kind, _MOST.get(kind, _EACH)) for kind in KINDS]
    rows = []
    for mixture in MIXTURES:
        counts = (sum(mixture),) if levels else mixture
        log_odds = np.concatenate([each[:n] for each, n in zip(found, counts, strict=False)]).mean(
            axis=0
        )
        rows.append((levels, " ".join(map(str, mixture)), *figures_of(expit(log_odds), y)))
    return rows


def show(title: str, frame: pd.DataFrame) -> None:
    """Print one Markdown table."""
    print(f"{title}\n\n| passes | mixture |", " | ".join(FIGURES), "|")
    print("|---|---|" + "---|" * len(FIGURES))
    by = frame.set_index(["table", "split"])
    first = by.loc[by["mixture"] == " ".join(map(str, MIXTURES[0])), FIGURES]
    for mixture in MIXTURES:
        ours = by.loc[by["mixture"] == " ".join(map(str, mixture)), FIGURES]
        cells = [f"{figure:.4f}" for figure in ours.mean()]
        if mixture != MIXTURES[0]:
            difference = ours - first
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            cells = [
                f"{cell} ({d:+.4f} ± {e:.4f})"
                for cell, d, e in zip(cells, difference.mean(), error, strict=True)
            ]
        print(f"| {sum(mixture)} | {' '.join(map(str, mixture))} |", " | ".join(cells), "|")
    print()


if __name__ == "__main__":
    main()
