"""What trees should learn and weigh in a blend, in tables of levels alone and in others.

    python benchmarks/blend_weights.py --model default --data DIR --splits 3 --out blend.csv

AUC of the default's passes, of cross-fitted trees (`puicl_model.trees`) that learn the network's
probabilities (`blend="trees"`) or to tell labelled rows from unlabelled ones, and of both by rank,
by the trees' share; folder and splits: see `real_tables.py`. Behind +-, the standard error over
tables and splits of the difference from the network alone.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables import data_digest, digest, measured, read_split, table_names
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier
from puicl_model.contexts import levels_alone
from puicl_model.preprocessing import TablePreprocessor
from puicl_model.trees import cross_fitted, taught_by

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
TEACHERS = ("network", "labels")
KEY = ["weights", "passes", "data", "table", "split", "levels", "teacher", "share"]


def main() -> None:
    """Measure and print two Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--passes", type=int, default=16)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="CSV of every figure; what it holds is kept")
    arguments = parser.parse_args()
    weights = digest(arguments.model)
    cells = [
        (weights, arguments.passes, data_digest(arguments.data, name), name, split)
        for split in range(arguments.splits)
        for name in table_names(arguments.data)
    ]
    measure_one = partial(measure, arguments.data, arguments.model)
    frame = measured(arguments.out, KEY, ["AUC"], cells, measure_one, arguments.jobs)
    for levels, kind in ((False, "measurements"), (True, "levels alone")):
        print(f"\n| trees' share, tables of {kind} | taught by the network | by the labels |")
        print("|---|---|---|")
        these = frame[frame["levels"].astype(bool) == levels]
        by = [these[these["teacher"] == teacher] for teacher in TEACHERS]
        for share in SHARES:
            print(f"| {share:.2f} |", " | ".join(against_none(part, share) for part in by), "|")


def measure(
    folder: Path, model: str, weights: str, passes: int, data: str, name: str, split: int
) -> list[tuple]:
    """(levels alone, teacher, share, AUC) of each share on one split of one table."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(folder, name, split)
    fitted = PUICLClassifier(model, n_estimators=passes, random_state=split).fit(x, s)
    log_odds = fitted.estimator_log_odds_.mean(axis=0)
    X, labeled = TablePreprocessor().fit_quietly(x), s == 1
    network, found = rankdata(log_odds), []
    for teacher, answers in zip(TEACHERS, (taught_by(log_odds, labeled), labeled), strict=True):
        scores, _ = cross_fitted(X, labeled, answers, np.random.default_rng(split))
        trees = rankdata(scores[~labeled])
        for share in SHARES:
            auc = roc_auc_score(y, (1 - share) * network + share * trees)
            found.append((levels_alone(X), teacher, share, auc))
    return found


def against_none(frame: pd.DataFrame, share: float) -> str:
    """The mean AUC with this share, and its difference from the network alone."""
    by = frame.pivot_table(index=["table", "split"], columns="share", values="AUC")
    if by.empty:
        return "–"
    difference = by[share] - by[0.0]
    error = difference.std(ddof=1) / np.sqrt(len(by))
    cell = f"{by[share].mean():.4f}"
    return f"{cell} ({difference.mean():+.4f} ± {error:.4f})" if share else cell


if __name__ == "__main__":
    main()
