"""How much the columns of a prior's tasks tell of the classes, beside those of real tables.

    prior-gen --config gpu_settle --stages 1 --split heldout --out heldout/
    python benchmarks/how_hard.py --shards heldout/ --data DIR --jobs 2

A random forest (the benchmark's oracle) and a logistic model are given the hidden labels and
cross-fitted over the unlabelled rows. Prints mean and quartiles of their AUC on the real tables of
a folder (the first split of `real_tables.py`), on held-out tasks evenly spaced over the shards (the
first of each microbatch, with classes of ten rows or more), and on these by the source of their
labels. A prior whose tasks are much harder than real tables teaches a network too much doubt; much
easier ones teach it too much confidence.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from joblib import Parallel, delayed
from real_tables import read_split, table_names
from sklearn.metrics import roc_auc_score
from weak_spots import sources, spread

from prior_gen.preview.difficulty import BASELINES, cross_fitted_scores
from pu_bench.methods import METHODS
from puicl_config import exit_on_input_error
from puicl_model import TablePreprocessor

LEARNERS = ("forest", "logistic")
FEWEST = 10


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tasks", type=count, default=200)
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    asked = [("real tables", *table(arguments.data, name)) for name in table_names(arguments.data)]
    asked += [
        (source, unlabeled, y)
        for source, (_, unlabeled, y) in spread(list(sources(arguments.shards)), arguments.tasks)
        if min(y.sum(), len(y) - y.sum()) >= FEWEST
    ]
    found = Parallel(n_jobs=arguments.jobs)(delayed(aucs)(x, y) for _, x, y in asked)
    frame = pd.DataFrame(found, columns=LEARNERS)
    frame["of"] = [source for source, _, _ in asked]
    real = frame["of"] == "real tables"
    print("| of |", " | ".join(["number", *LEARNERS]), "|\n|---|---|" + "---|" * len(LEARNERS))
    for name, rows in [
        ("real tables", frame[real]),
        ("all tasks", frame[~real]),
        *frame[~real].groupby("of"),
    ]:
        cells = [in_words(rows[learner]) for learner in LEARNERS]
        print(f"| {name} | {len(rows)} |", " | ".join(cells), "|")


def table(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The unlabelled rows [n_u, d] of a table's first split, as the classifier reads them; y."""
    x, s, y = read_split(folder, name, 0)
    return TablePreprocessor().fit_quietly(x)[~np.asarray(s, dtype=bool)], y


def aucs(x: np.ndarray, y: np.ndarray) -> list[float]:
    """AUC of each of `LEARNERS` on rows x [n, d] of classes y [n], out of fold."""
    warnings.simplefilter("ignore")  # joblib's worker processes have filters of their own
    y = y.astype(int)
    scores = (
        METHODS["oracle"]().fit_predict(x[:0], x, 0, labels=y).order,
        cross_fitted_scores(BASELINES["logistic"], x, y, 0),
    )
    return [float(roc_auc_score(y, score)) for score in scores]


def in_words(values: pd.Series) -> str:
    """Text: mean and quartiles."""
    quartiles = ", ".join(f"{value:.2f}" for value in values.quantile([0.25, 0.5, 0.75]))
    return f"{values.mean():.3f} ({quartiles})"


if __name__ == "__main__":
    main()
