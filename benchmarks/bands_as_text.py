"""What the order of levels is worth: numbers replaced by text bands such as `15 to 19`.

    python benchmarks/bands_as_text.py --data DEVELOPMENT --jobs 2
    python benchmarks/bands_as_text.py --data DEVELOPMENT --jobs 2 --grades

Each column of more than 20 different numbers is cut into bands of about equally many rows, named by
text; with `--grades` into at most five, `very low` to `very high`. One pass reads the bands in the
order that the classifier finds, one in alphabetical order, and one the numbers themselves. Prints
each table's mean AUC over its splits, and the classifier's order minus the alphabetical one, ± the
standard error over the tables.
"""

import argparse
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from joblib import Parallel, delayed
from real_tables import read_split, table_names
from sklearn.metrics import roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

_FIVE = ["very low", "low", "medium", "high", "very high"]
# Names of the grades, by their number.
_GRADES = {1: _FIVE[2:3], 2: _FIVE[1::2], 3: _FIVE[1:4], 4: _FIVE[1:], 5: _FIVE}


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--bands", type=count, default=8, help="maximum bands of a column")
    parser.add_argument("--grades", action="store_true", help="name bands by words without numbers")
    parser.add_argument("--splits", type=count, default=2)
    parser.add_argument("--jobs", type=count, default=1)
    asked = parser.parse_args()
    n_bands = min(asked.bands, len(_FIVE)) if asked.grades else asked.bands
    found = Parallel(n_jobs=asked.jobs, return_as="generator")(
        delayed(measure)(asked.data, name, split, n_bands, asked.grades)
        for name in table_names(asked.data)
        for split in range(asked.splits)
    )
    frame = pd.DataFrame([row for row in found if row is not None])
    print(
        "| table | columns in bands | bands | bands by the alphabet | numbers |\n"
        + "|---" * 5
        + "|"
    )
    if frame.empty:
        return
    means = frame.groupby("table", sort=False).mean()
    for name, row in [*means.iterrows(), ("mean", means.mean())]:
        aucs = " | ".join(f"{row[way]:.4f}" for way in ("found", "alphabet", "numbers"))
        print(f"| {name} | {round(row['columns'], 1):g} | {aucs} |")
    gain = means.found - means.alphabet
    print(f"\n{gain.mean():+.4f} ± {gain.sem():.4f}, ahead on {(gain > 0).sum()} of {len(gain)}")


def measure(folder: Path, name: str, split: int, n_bands: int, grades: bool) -> dict | None:
    """AUCs of one split; None if no column can be cut."""
    warnings.simplefilter("ignore")
    x, s, y = read_split(folder, name, split)
    bands = {column: in_bands(x[column], n_bands, grades) for column in x if can_be_cut(x[column])}
    if not bands:
        return None

    def auc(columns: dict[str, pd.Series]) -> float:
        fitted = PUICLClassifier(n_estimators=1, random_state=split).fit(x.assign(**columns), s)
        return roc_auc_score(y, fitted.unlabeled_proba_)

    alphabet = {
        column: pd.Series(
            pd.Categorical(cells, categories=sorted(cells.dropna().unique()), ordered=True),
            index=cells.index,
        )
        for column, cells in bands.items()
    }
    return {
        "table": name,
        "columns": len(bands),
        "found": auc(bands),
        "alphabet": auc(alphabet),
        "numbers": auc({}),
    }


def can_be_cut(column: pd.Series) -> bool:
    """Whether the column holds more than 20 different numbers."""
    return column.dtype.kind in "if" and column.nunique() > 20


def in_bands(column: pd.Series, n_bands: int, grades: bool = False) -> pd.Series:
    """Text [n] such as `15 to 19`, or `low`; missing cells stay missing."""
    edges = np.unique(np.nanquantile(column, np.linspace(0, 1, n_bands + 1)))
    names = [f"{low:.6g} to {high:.6g}" for low, high in pairwise(edges)]
    if grades:
        names = _GRADES[len(names)]
    place = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(names) - 1)
    cells = pd.Series(np.array(names, dtype=object)[place], index=column.index)
    return cells.mask(column.isna(), None)


if __name__ == "__main__":
    main()
