"""Networks beside one another on a folder of real tables: order, probabilities, share.

    python benchmarks/compare_networks.py --models default runs/next/model.safetensors --data DIR \
        --splits 6 --out figures.csv

The folder holds `index.json` (name to {"positive": value of the last column}) and `NAME.csv.gz`;
splits are the benchmark's (`pu_bench.split_pu`). AUC, accuracy, |error of the share of positives|
and Brier score, the mean over tables; behind +-, the standard error over splits of the difference
from the first network: what other splits of these tables would say, not what other tables would.
Ten splits tell two networks apart to some .001 of AUC, two do not (docs/weights.md). On one core,
some two minutes a network and split.
"""

import argparse
import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from ensembling import read_tables
from joblib import Parallel, delayed
from sklearn.metrics import brier_score_loss, roc_auc_score

from pu_bench import split_pu
from puicl_config import write_atomically
from puicl_model import PUICLClassifier, find_weights

FIGURES = ["AUC", "accuracy", "share", "Brier"]
KEY = ["weights", "passes", "table", "split"]


def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="CSV of every figure; what it holds is kept")
    arguments = parser.parse_args()
    frame = pd.DataFrame(columns=[*KEY, *FIGURES])
    if arguments.out and arguments.out.exists():
        frame = pd.read_csv(arguments.out)
    done = set(frame[KEY].itertuples(index=False, name=None))
    digests = [digest(model) for model in arguments.models]
    asked = [
        (model, n, name, split)
        for split in range(arguments.splits)
        for name in [name for name, _, _ in read_tables(arguments.data, None)]
        for model, weights in zip(arguments.models, digests, strict=True)
        for n in arguments.passes
        if (weights, n, name, split) not in done
    ]
    rows = Parallel(n_jobs=arguments.jobs, return_as="generator")(
        delayed(measure)(arguments.data, *cell) for cell in asked
    )
    for row in rows:
        new = pd.DataFrame([row], columns=frame.columns)
        frame = pd.concat([frame, new]) if len(frame) else new
        if arguments.out:
            write_atomically(arguments.out, frame.to_csv(index=False).encode())
    frame = frame[frame["split"] < arguments.splits]
    print("| network | passes |", " | ".join(FIGURES), "|\n|---|---|" + "---|" * len(FIGURES))
    for n in arguments.passes:
        for line in lines(frame[frame["passes"] == n], arguments.models, digests):
            print(f"| {line[0]} | {n} |", " | ".join(line[1:]), "|")


def digest(model: str) -> str:
    """The first digits of the SHA-256 of a network's weights."""
    return hashlib.sha256(find_weights(model).read_bytes()).hexdigest()[:16]


def measure(data: Path, model: str, n: int, name: str, split: int) -> tuple:
    """One row of figures: one network, `n` passes, on one split of one table."""
    warnings.simplefilter("ignore")
    _, table, positive = next(iter(read_tables(data, [name])))
    task = split_pu(np.arange(len(table), dtype=float)[:, None], positive, split)
    x = table.iloc[task.x[:, 0].astype(int)].reset_index(drop=True)
    fitted = PUICLClassifier(model, n_estimators=n, random_state=split).fit(x, task.s)
    probability = fitted.unlabeled_proba_
    return (
        *(digest(model), n, name, split),
        roc_auc_score(task.y, probability),
        ((probability > 0.5) == task.y).mean(),
        abs(fitted.class_prior_ - task.y.mean()),
        brier_score_loss(task.y, probability),
    )


def lines(frame: pd.DataFrame, models: list[str], digests: list[str]) -> Iterator[list[str]]:
    """Name and figures of each network, differences from the first behind its own."""
    means = frame.groupby(["weights", "split"])[FIGURES].mean()
    for model, weights in zip(models, digests, strict=True):
        ours = means.loc[weights]
        cells = [f"{figure:.4f}" for figure in ours.mean()]
        if weights != digests[0]:
            difference = ours - means.loc[digests[0]]
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            cells = [
                f"{cell} ({d:+.4f} ± {e:.4f})"
                for cell, d, e in zip(cells, difference.mean(), error, strict=True)
            ]
        yield [Path(model).stem, *cells]


if __name__ == "__main__":
    main()
