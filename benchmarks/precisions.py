"""What `precision="bfloat16"` changes on a folder of real tables: ranking, probabilities, time.

    python benchmarks/precisions.py --data DIR --passes 1 16

Folder and splits: see `real_tables.py`. Prints one line for each number of passes: means over
tables of AUC, Brier score and |error of the share of positives| in float32, their mean and largest
differences in bfloat16, the mean and largest difference of a probability, and the time of all fits
in bfloat16 relative to float32 (processor time; one thread).
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from how_many import count
from real_tables import data_digest, digest, measured, read_split, table_names
from sklearn.metrics import brier_score_loss, roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier, precision
from puicl_model.inference import resolve_device

SCORES = ["AUC", "Brier", "share"]
FIGURES = [*SCORES, *(f"{name} in bfloat16" for name in SCORES), "mean", "largest", "s", "s16"]
KEY = ["weights", "passes", "data", "table", "split"]


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="*", help="only these tables")
    parser.add_argument("--splits", type=count, default=1)
    parser.add_argument("--passes", type=count, nargs="+", default=[1, 16])
    parser.add_argument("--device", default="auto")
    parser.add_argument(
        "--out", type=Path, help="CSV of all figures; cells it holds are not redone"
    )
    options = parser.parse_args()
    cells = [
        (digest(options.model), n, data_digest(options.data, name), name, split)
        for name in table_names(options.data, options.tables)
        for split in range(options.splits)
        for n in options.passes
    ]
    if precision.computed_in("bfloat16", resolve_device(options.device)) != "bfloat16":
        print(
            "no instructions for bfloat16 here: the differences are as elsewhere, the time is not"
        )
    measure_one = partial(measure, options.data, options.model, options.device)
    frame = measured(options.out, KEY, FIGURES, cells, measure_one)
    print("| passes |", " | ".join(SCORES), "| P: mean | P: largest | time |")
    print("|---|" + "---|" * (len(SCORES) + 3))
    for n in options.passes:
        there = frame[frame["passes"] == n]
        line = []
        for name in SCORES:
            apart = there[f"{name} in bfloat16"] - there[name]
            most = apart.iloc[apart.abs().argmax()]
            line.append(f"{there[name].mean():.4f} ({apart.mean():+.5f}, most {most:+.4f})")
        line.append(f"{there['mean'].mean():.4f} | {there['largest'].max():.3f}")
        print(f"| {n} |", " | ".join(line), f"| {there['s16'].sum() / there['s'].sum():.2f} |")


def measure(
    folder: Path, model: str, device: str, _: str, n: int, __: str, name: str, split: int
) -> list[tuple]:
    """One row of figures: `n` passes over one split of one table, in both precisions.

    Works on any processor: without instructions for bfloat16, products are computed in float32.
    """
    warnings.simplefilter("ignore")
    precision.multiplies_bfloat16 = lambda: True
    x, s, y = read_split(folder, name, split)
    found, seconds = [], []
    for asked in ("float32", "bfloat16"):
        classifier = PUICLClassifier(
            model, n_estimators=n, precision=asked, device=device, n_threads=1
        )
        start = time.process_time()
        found.append(classifier.fit(x, s).unlabeled_proba_)
        seconds.append(time.process_time() - start)
    apart = np.abs(found[0] - found[1])
    scores = [
        score
        for p in found
        for score in (roc_auc_score(y, p), brier_score_loss(y, p), abs(p.mean() - y.mean()))
    ]
    return [(*scores, apart.mean(), apart.max(), *seconds)]


if __name__ == "__main__":
    main()
