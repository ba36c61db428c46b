"""AUC on tables of more columns than the network reads at once, by how they are read.

    python benchmarks/made_wide.py --data DEVELOPMENT --columns 300

Real tables are made wide in two ways: by uninformative columns (copies of their own with the rows
shuffled, so that a few of many columns matter), and as mixtures (every column is a random sum of
all, plus as much noise, so that each tells a little, as in spectra or gene expression). Uses one
split and at most `--rows` rows of each table. Passes over all columns read them in groups of at
most a hundred. "Before" is the former default, whose passes along principal axes read all axes and
not only the first ones. Takes half an hour on one core with AVX2 for 300 columns.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from real_tables import thin, weights_file
from sklearn.metrics import roc_auc_score

from pu_bench import split_pu
from pu_bench.data import load_collection
from puicl_config import InputError, exit_on_input_error
from puicl_model import PUICLClassifier, TablePreprocessor
from puicl_model.preprocessing import fit_scaling
from puicl_model.trees import cross_fitted

# The numbers of axes in `_ENSEMBLES`.
_AXES = (5, 10)
# Ensembles: means of single passes, by the names that `passes` gives them.
_ENSEMBLES = {
    "before: one of each": ("quantile", "all axes", "rotated_quantile", "standard"),
    "the same without axes": ("quantile", "rotated_quantile", "standard"),
    "10 axes instead of all": ("quantile", "first 10 axes", "rotated_quantile", "standard"),
    "5 axes instead of all": ("quantile", "first 5 axes", "rotated_quantile", "standard"),
    "now, with 10 axes": (
        "quantile",
        "first 10 axes",
        "rotated_quantile",
        "first 10 axes of quantiles",
    ),
    "now, with 5 axes": (
        "quantile",
        "first 5 axes",
        "rotated_quantile",
        "first 5 axes of quantiles",
    ),
}


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--columns", type=int, default=300)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument(
        "--axes",
        type=int,
        nargs="*",
        default=[20, 30, 50, 100],
        help="further numbers of first axes to read, besides the 5 and 10 of the ensembles",
    )
    arguments = parser.parse_args()
    arguments.model = weights_file(arguments.model)
    warnings.simplefilter("ignore")
    ways: dict[str, Callable] = {"columns that tell nothing": beside_others, "mixtures": mixed}
    aucs: dict[str, dict[str, list[float]]] = {way: {} for way in ways}
    start = time.monotonic()
    for name, table in load_collection(arguments.data, arguments.tables).tables.items():
        task = split_pu(table.x, table.positive, 0)
        kept, n_labeled, y = thin(task.n_labeled, task.y, arguments.rows)
        own = TablePreprocessor().fit_transform(task.x)[kept].astype(float)
        if y.min() == y.max():
            continue
        for way, make in ways.items():
            x = make(own, arguments.columns, np.random.default_rng(1))
            scores = passes(arguments, x, n_labeled)
            for what, members in _ENSEMBLES.items():
                scores[what] = np.mean([scores[member] for member in members], axis=0)
            for what, score in scores.items():
                aucs[way].setdefault(what, []).append(roc_auc_score(y, score))
        print(f"{name}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    if not any(aucs.values()):
        raise InputError("no table has both classes among its unlabelled rows: take more --rows")
    show(aucs, arguments.columns)


def beside_others(x: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """Columns x [n, d] among copies of themselves with shuffled rows, [n, width]."""
    parts = [x]
    while sum(part.shape[1] for part in parts) < width:
        parts.append(np.stack([rng.permutation(column) for column in x.T], axis=1))
    return np.concatenate(parts, axis=1)[:, :width][:, rng.permutation(width)]


def mixed(x: np.ndarray, width: int, rng: np.random.Generator) -> np.ndarray:
    """Random sums [n, width] of the standardised columns [n, d], with noise as large as they."""
    spread = x.std(axis=0)
    z = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1)
    loadings = rng.normal(size=(z.shape[1], width)) / np.sqrt(z.shape[1])
    return z @ loadings + rng.normal(size=(len(z), width))


def passes(arguments: argparse.Namespace, x: np.ndarray, n_labeled: int) -> dict[str, np.ndarray]:
    """Log-odds [n_u] of single passes over x [n, w], and the trees' scores."""
    s = np.arange(len(x)) < n_labeled

    def score(x: np.ndarray, scaling: str) -> np.ndarray:
        fitted = PUICLClassifier(
            arguments.model, n_estimators=1, preprocessing=None, scalings=(scaling,)
        )
        return fitted.fit(x, s).estimator_log_odds_[0]

    found = {kind: score(x, kind) for kind in ("quantile", "standard", "rotated_quantile")}
    axes = {
        "axes": fit_scaling(x, "principal")(x).astype(float),
        "axes of quantiles": fit_scaling(x, "principal_quantile")(x).astype(float),
    }
    found["all axes"] = score(axes["axes"], "standard")
    for what, columns in axes.items():
        for k in sorted({*_AXES, *arguments.axes}):
            found[f"first {k} {what}"] = score(columns[:, :k], "standard")
    scores, _ = cross_fitted(x, s, s, np.random.default_rng(0))
    return found | {"cross-fitted trees": scores[~s]}


def show(aucs: dict[str, dict[str, list[float]]], columns: int) -> None:
    """Print means, and differences from "before" with their standard errors."""
    reference = next(iter(_ENSEMBLES))
    n = len(next(iter(aucs.values()))[reference])
    print(f"{n} tables made {columns} columns wide\n")
    print(f"| what | {' | | '.join(aucs)} | |\n|---|{'---|' * 2 * len(aucs)}")
    for what in next(iter(aucs.values())):
        cells = []
        for found in aucs.values():
            gain = np.array(found[what]) - found[reference]
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            cells += [f"{np.mean(found[what]):.4f}", f"{gain.mean():+.4f} ± {error:.4f}"]
        print(f"| {what} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
