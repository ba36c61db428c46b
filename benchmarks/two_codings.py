"""What a second coding of categories is worth: ordered by frequency in half of the passes.

    python benchmarks/two_codings.py --data choosing --jobs 2

On each table that has such columns (`TablePreprocessor.codes_by_count`; text is read like a CSV
file), the default passes are compared with the same passes in alphabetical order alone: means over
splits of AUC and Brier score for the first 4, the first 8 and all 16 passes, with standard errors
over tables.
"""

import argparse
import warnings
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from how_many import count
from joblib import Parallel, delayed
from real_tables import read_split, table_names
from scipy import special
from sklearn.metrics import brier_score_loss, roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier, TablePreprocessor

_PASSES = (4, 8, 16)


class _Alphabet(TablePreprocessor):
    """Preprocessor without the codes by frequency."""

    def codes_by_count(self) -> dict[int, np.ndarray]:
        return {}


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=count, default=2)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--jobs", type=count, default=1)
    asked = parser.parse_args()
    cells = Parallel(n_jobs=asked.jobs)(
        delayed(measure)(asked.data, name, split, asked.precision)
        for name in table_names(asked.data)
        for split in range(asked.splits)
    )
    found = pd.DataFrame([cell for cell in cells if cell is not None])
    names = [f"{n} passes: {figure}" for n in _PASSES for figure in ("AUC", "Brier score")]
    print(f"| table | columns | {' | '.join(names)} |")
    print("|---" * (2 + len(names)) + "|")
    if found.empty:
        return
    means = found.groupby("table").mean()
    for name, row in means.iterrows():
        told = " | ".join(f"{row[column]:+.4f}" for column in names)
        print(f"| {name} | {row['columns']:g} | {told} |")
    told = " | ".join(
        f"{means[column].mean():+.4f} ± {means[column].sem():.4f}" for column in names
    )
    print(f"| mean of {len(means)} | | {told} |")


def measure(
    folder: Path, name: str, split: int, precision: Literal["float32", "bfloat16"]
) -> dict | None:
    """Differences of one split; None if no column has other codes."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(folder, name, split)
    columns = len(TablePreprocessor().fit(x).codes_by_count())
    if not columns:
        return None
    with_both, alphabet = (
        PUICLClassifier(
            n_estimators=_PASSES[-1],
            preprocessing=preprocessing,
            precision=precision,
            random_state=split,
        ).fit(x, s)
        for preprocessing in (TablePreprocessor(), _Alphabet())
    )
    cell = {"table": name, "columns": columns}
    for n in _PASSES:
        both, one = (
            special.expit(each.estimator_log_odds_[:n].mean(axis=0))
            for each in (with_both, alphabet)
        )
        cell[f"{n} passes: AUC"] = roc_auc_score(y, both) - roc_auc_score(y, one)
        cell[f"{n} passes: Brier score"] = brier_score_loss(y, both) - brier_score_loss(y, one)
    return cell


if __name__ == "__main__":
    main()
