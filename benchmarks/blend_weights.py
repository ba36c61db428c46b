"""How much the network's students should weigh in a blend, by kind of table.

    python benchmarks/blend_weights.py --model default --data DIR --splits 3 --out blend.csv

AUC of the default's passes, and of these blended by rank with students that learn the network's
probabilities (`blend="trees"`): trees, the nearest rows, or both. The students' joint weight is
varied, and so is the power of their agreement with the network by which that weight is multiplied
(0: not at all). Another student is trees that learn to tell labelled from unlabelled rows. Tables
of levels alone are shown apart from the others. Folder and splits: see `real_tables.py`. After +-,
the standard error over tables and splits of the difference from the network alone.
"""

import argparse
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from real_tables import data_digest, digest, measured, read_split, table_names
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier
from puicl_model.blend import Students, taught_by
from puicl_model.contexts import levels_alone
from puicl_model.preprocessing import TablePreprocessor
from puicl_model.trees import cross_fitted

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
POWERS = (0, 4)
STUDENTS = ("trees", "nearest rows", "both", "trees by the labels")
KEY = ["weights", "passes", "data", "table", "split", "levels", "students", "power", "share"]


@exit_on_input_error
def main() -> None:
    """Measure and print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=count, default=3)
    parser.add_argument("--passes", type=count, default=16)
    parser.add_argument("--jobs", type=count, default=1)
    parser.add_argument(
        "--out", type=Path, help="CSV of all figures; cells it holds are not redone"
    )
    arguments = parser.parse_args()
    weights = digest(arguments.model)
    cells = [
        (weights, arguments.passes, data_digest(arguments.data, name), name, split)
        for split in range(arguments.splits)
        for name in table_names(arguments.data)
    ]
    measure_one = partial(measure, arguments.data, arguments.model)
    frame = measured(arguments.out, KEY, ["AUC"], cells, measure_one, arguments.jobs)
    for (levels, kind), power in product(((False, "measurements"), (True, "levels alone")), POWERS):
        print(f"\n| weigh together, times agreement^{power}: {kind} |", " | ".join(STUDENTS), "|")
        print("|---|" + "---|" * len(STUDENTS))
        these = frame[(frame["levels"].astype(bool) == levels) & (frame["power"] == power)]
        for share in SHARES:
            by = [these[these["students"] == name] for name in STUDENTS]
            print(f"| {share} |", " | ".join(against_none(part, share) for part in by), "|")


def measure(
    folder: Path, model: str, weights: str, passes: int, data: str, name: str, split: int
) -> list[tuple]:
    """(levels alone, students, power, share, AUC) of each blend on one split of one table."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(folder, name, split)
    fitted = PUICLClassifier(model, n_estimators=passes, random_state=split).fit(x, s)
    log_odds = fitted.estimator_log_odds_.mean(axis=0)
    X, labeled = TablePreprocessor().fit_quietly(x), s == 1
    network, rng = rankdata(log_odds), np.random.default_rng(split)
    _, (trees, near) = Students.taught(X, labeled, taught_by(log_odds, labeled), rng)
    told, _ = cross_fitted(X, labeled, labeled, np.random.default_rng(split))
    trees, near, told = (rankdata(scores[~labeled]) for scores in (trees, near, told))
    found = []
    for students, some in zip(STUDENTS, ([trees], [near], [trees, near], [told]), strict=True):
        agreement = [max(0.0, np.corrcoef(network, ranks)[0, 1]) for ranks in some]
        for power, share in product(POWERS, (0.0, *SHARES)):
            weighs = [share / len(some) * each**power for each in agreement]
            mixed = (1 - sum(weighs)) * network
            mixed += sum(weight * ranks for weight, ranks in zip(weighs, some, strict=True))
            found.append((levels_alone(X), students, power, share, roc_auc_score(y, mixed)))
    return found


def against_none(frame: pd.DataFrame, share: float) -> str:
    """Text: the mean AUC with this share, and its difference from the network alone."""
    by = frame.pivot_table(index=["table", "split"], columns="share", values="AUC")
    if by.empty:
        return "–"
    difference = by[share] - by[0.0]
    error = difference.std(ddof=1) / np.sqrt(len(by))
    return f"{by[share].mean():.4f} ({difference.mean():+.4f} ± {error:.4f})"


if __name__ == "__main__":
    main()
