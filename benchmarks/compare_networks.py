"""Compare networks on a folder of real tables: ranking, probabilities, share of positives.

    python benchmarks/compare_networks.py --models default runs/next/model.safetensors --data DIR \
        --splits 6 --out figures.csv

Folder and splits: see `real_tables.py`. Prints means over tables of AUC, accuracy, |error of the
share of positives| and Brier score, and their differences from the first network with two standard
errors: over splits, for other splits of these tables, and over tables, for other tables. Neither
says how far the same training from another seed would differ, which may be much more. Ten splits
resolve some .001 of AUC between two networks on these tables; two splits do not (docs/weights.md).
Takes some two minutes for each network and split on one core. `--rows` thins each split, to measure
on tables of few rows.
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from real_tables import data_digest, digest, measured, read_split, table_names, thin
from sklearn.metrics import brier_score_loss, roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

FIGURES = ["AUC", "accuracy", "share", "Brier"]
KEY = ["weights", "passes", "rows", "data", "table", "split"]


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=count, default=2)
    parser.add_argument("--passes", type=count, nargs="+", default=[1, 16])
    parser.add_argument("--rows", type=int, default=0, help="maximum rows of each split; 0: all")
    parser.add_argument("--tables", nargs="*", help="only these tables")
    parser.add_argument("--jobs", type=count, default=1)
    parser.add_argument(
        "--out", type=Path, help="CSV of all figures; cells it holds are not redone"
    )
    arguments = parser.parse_args()
    models = dict(zip(map(digest, arguments.models), arguments.models, strict=True))
    cells = [
        (weights, n, arguments.rows, data_digest(arguments.data, name), name, split)
        for split in range(arguments.splits)
        for name in table_names(arguments.data, arguments.tables)
        for weights in models
        for n in arguments.passes
    ]
    measure_one = partial(measure, arguments.data, models)
    frame = measured(arguments.out, KEY, FIGURES, cells, measure_one, arguments.jobs)
    frame = frame.set_index(KEY).loc[cells].reset_index()
    print("| network | passes | AUC | accuracy | error of the share | Brier score |")
    print("|---|---|" + "---|" * len(FIGURES))
    for n in arguments.passes:
        for line in lines(frame[frame["passes"] == n], models):
            print(f"| {line[0]} | {n} |", " | ".join(line[1:]), "|")


def measure(
    folder: Path,
    models: dict[str, str],
    weights: str,
    n: int,
    rows: int,
    data: str,
    name: str,
    split: int,
) -> list[tuple]:
    """One row of figures: one network, `n` passes, one split of one table (digest: `data`)."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(folder, name, split)
    if rows:
        kept, _, y = thin(len(s) - len(y), y, rows)
        x, s = x.iloc[kept], s[kept]
    fitted = PUICLClassifier(models[weights], n_estimators=n, random_state=split).fit(x, s)
    return [figures_of(fitted.unlabeled_proba_, y)]


def figures_of(probability: np.ndarray, y: np.ndarray) -> tuple:
    """`FIGURES` of the unlabelled rows' probabilities, whose mean is the share of positives."""
    return (
        roc_auc_score(y, probability),
        ((probability > 0.5) == y).mean(),
        abs(probability.mean() - y.mean()),
        brier_score_loss(y, probability),
    )


def lines(frame: pd.DataFrame, models: dict[str, str]) -> Iterator[list[str]]:
    """Name and figures of each network, each figure followed by its difference from the first."""
    means = frame.groupby(["weights", "table", "split"])[FIGURES].mean()
    first = next(iter(models))
    for weights, model in models.items():
        ours = means.loc[weights]
        cells = [f"{figure:.4f}" for figure in ours.mean()]
        if weights != first:
            difference = ours - means.loc[first]
            errors = [standard_error(difference, over) for over in ("split", "table")]
            cells = [
                f"{cell} ({d:+.4f} ± {split}, ± {table})"
                for cell, d, split, table in zip(cells, difference.mean(), *errors, strict=True)
            ]
        yield [model, *cells]


def standard_error(differences: pd.DataFrame, over: str) -> list[str]:
    """Standard error of each column's mean over splits or tables; a dash if there is only one."""
    means = differences.groupby(over).mean()
    if len(means) < 2:
        return ["–"] * means.shape[1]
    return [f"{error:.4f}" for error in means.sem()]


if __name__ == "__main__":
    main()
