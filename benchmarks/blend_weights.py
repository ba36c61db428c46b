"""What trees should weigh in `blend="trees"`, in tables of levels alone and in others.

    python benchmarks/blend_weights.py --model default --data DIR --splits 3 --out blend.csv

AUC of the default's passes, of its trees (`puicl_model.trees`) and of both by rank, by the trees'
share; folder and splits: see `real_tables.py`. Behind +-, the standard error over tables and splits
of the difference from the network alone.
"""

import argparse
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from compare_networks import digest
from real_tables import measured, read_split, table_names
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier
from puicl_model.contexts import levels_alone
from puicl_model.preprocessing import TablePreprocessor
from puicl_model.trees import cross_fitted

SHARES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
KEY = ["weights", "passes", "table", "split", "levels", "share"]


def main() -> None:
    """Measure and print one Markdown table."""
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
        (weights, arguments.passes, name, split)
        for split in range(arguments.splits)
        for name in table_names(arguments.data)
    ]
    measure_one = partial(measure, arguments.data, arguments.model)
    frame = measured(arguments.out, KEY, ["AUC"], cells, measure_one, arguments.jobs)
    frame = frame[(frame["weights"] == weights) & (frame["passes"] == arguments.passes)]
    frame = frame[frame["split"] < arguments.splits]
    print("| trees' share | tables of measurements | tables of levels alone |\n|---|---|---|")
    kinds = [frame[frame["levels"].astype(bool) == levels] for levels in (False, True)]
    for share in SHARES:
        print(f"| {share:.2f} |", " | ".join(against_none(kind, share) for kind in kinds), "|")


def measure(
    data: Path, model: str, weights: str, passes: int, name: str, split: int
) -> list[tuple]:
    """(levels alone, share, AUC) of each share on one split of one table."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(data, name, split)
    fitted = PUICLClassifier(model, n_estimators=passes, random_state=split).fit(x, s)
    network = rankdata(fitted.estimator_log_odds_.mean(axis=0))
    X = TablePreprocessor().fit_quietly(x)
    trees = rankdata(cross_fitted(X, s == 1, np.random.default_rng(split))[0][s == 0])
    return [
        (levels_alone(X), share, roc_auc_score(y, (1 - share) * network + share * trees))
        for share in SHARES
    ]


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
