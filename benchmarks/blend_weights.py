"""What readers along kernels and students should weigh beside the network in a blend.

    python benchmarks/blend_weights.py --model default --data DIR --splits 3 --out blend.csv

AUC of the default's passes; of these averaged with readers along the axes of trees' kernel, of a
Gaussian one, or of both, by what each weighs; and of that blended by rank with the students, trees
and nearest rows that learn the network's probabilities, by what they weigh together; all times a
power of their agreement with the network (`blend="trees"`). Folder and splits: see
`real_tables.py`. Behind +-, the standard error over tables and splits of the difference from the
network alone.
"""

import argparse
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from real_tables import data_digest, digest, measured, read_split, table_names
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score

from puicl_model import PUICLClassifier
from puicl_model.blend import Students, agreement, reliability, taught_by
from puicl_model.contexts import TrainedRange, levels_alone
from puicl_model.kernel_reading import read_along_kernels
from puicl_model.preprocessing import TablePreprocessor

POWERS = (4, 10, 16)
SHARES = (0.0, 0.2, 0.4, 0.6)
READS = (0.0, 0.3, 0.6, 1.0)
READERS = ("trees' kernel", "Gaussian kernel", "both")
KEY = ["weights", "passes", "data", "table", "split", "levels", "readers", "power", "read", "share"]


def main() -> None:
    """Measure and print Markdown tables."""
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
    tables = product(((False, "measurements"), (True, "levels alone")), READERS, POWERS)
    for (levels, kind), readers, power in tables:
        these = frame[
            (frame["levels"].astype(bool) == levels)
            & (frame["readers"] == readers)
            & (frame["power"] == power)
        ]
        print(f"\n{kind}, {readers}, times agreement^{power}; a reader's weight by students' share")
        print("\n| |", " | ".join(map(str, SHARES)), "|\n|---|" + "---|" * len(SHARES))
        for read in READS:
            print(f"| {read} |", " | ".join(against_none(these, read, s) for s in SHARES), "|")


def measure(
    folder: Path, model: str, weights: str, passes: int, data: str, name: str, split: int
) -> list[tuple]:
    """(levels alone, readers, power, weight, share, AUC) of each blend on one split of a table."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(folder, name, split)
    fitted = PUICLClassifier(model, n_estimators=passes, random_state=split).fit(x, s)
    network = fitted.estimator_log_odds_.mean(axis=0)
    X, labeled = TablePreprocessor().fit_quietly(x), s == 1
    answers = taught_by(network, labeled)
    _, taught = Students.taught(X, labeled, answers, np.random.default_rng(split))
    _, along = read_along_kernels(
        fitted.network_,
        TrainedRange.from_card(fitted.model_card_),
        X,
        labeled,
        answers,
        n_estimators=passes,
        rng=np.random.default_rng((split, 1)),
    )
    reliable = reliability(fitted.estimator_log_odds_)
    found = []
    for readers, power, read in product(READERS, POWERS, READS):
        asked = along if readers == "both" else along[[READERS.index(readers)]]
        each = 2 * read / len(asked)  # together as much as both
        weighs = np.array(
            [1.0, *(each * agreement(network, one, reliable, power) for one in asked)]
        )
        mean = weighs @ np.stack([network, *asked]) / weighs.sum()
        for share in SHARES:
            shares = [
                share / 2 * agreement(mean, one, reliable, power) for one in taught[:, ~labeled]
            ]
            mixed = (1 - sum(shares)) * rankdata(mean)
            for weight, one in zip(shares, taught[:, ~labeled], strict=True):
                mixed += weight * rankdata(one)
            auc = roc_auc_score(y, mixed)
            found.append((levels_alone(X), readers, power, read, share, auc))
    return found


def against_none(frame: pd.DataFrame, read: float, share: float) -> str:
    """The mean AUC with these weights, and its difference from the network alone."""
    by = frame.pivot_table(index=["table", "split"], columns=["read", "share"], values="AUC")
    if by.empty:
        return "–"
    difference = by[read, share] - by[0.0, 0.0]
    error = difference.std(ddof=1) / np.sqrt(len(by))
    return f"{by[read, share].mean():.4f} ({difference.mean():+.4f} ± {error:.4f})"


if __name__ == "__main__":
    main()
