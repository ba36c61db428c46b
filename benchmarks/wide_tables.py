"""Ways to handle tables of more columns than the network was trained on.

    prior-gen --config cpu --stages 20 --split heldout --out wide/ \\
        --set "prior.n_features=[30, 100]" --set prior.steps_per_stage=10
    python benchmarks/wide_tables.py --model M.safetensors --shards wide/

Uses one task of each microbatch and one estimator, averaging only over subsets of columns. Compares
all columns at once, the first k alone, random subsets of k columns that cover the table, the k
columns that individually tell labelled from unlabelled rows best, subsets drawn by that relevance,
and cross-fitted trees. Prints mean AUC, its difference from all columns at once with the standard
error over tasks, Brier score, and error of the share (not for the trees, whose scores are no
probabilities). With `--data DIR --tables spambase` on real tables (as for `puicl bench`).
The defaults take some five minutes on one core; `--tasks 40 --rows 1000` is the full measurement.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
from how_many import count
from real_tables import thin, weights_file, with_range
from scipy.special import expit
from sklearn.metrics import roc_auc_score
from weak_spots import spread

from pu_bench import split_pu
from pu_bench.data import load_collection
from puicl_config import InputError, exit_on_input_error
from puicl_model import PUICLClassifier, TablePreprocessor
from puicl_model.contexts import column_relevance
from puicl_model.preprocessing import fit_scaling
from puicl_model.trees import cross_fitted
from shard_io import open_shards

_TREES = "cross-fitted trees"


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--shards")
    parser.add_argument("--tasks", type=count, default=16)
    parser.add_argument("--rows", type=int, default=300, help="maximum rows of each task")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--splits", type=count, default=8, help="splits of each real table")
    parser.add_argument("--k", type=int, nargs="*", default=[10, 20])
    arguments = parser.parse_args()
    if not arguments.shards and not arguments.data:
        parser.error("give --shards, --data or both")
    arguments.model = weights_file(arguments.model)
    warnings.simplefilter("ignore")
    tasks: list[tuple[np.ndarray, int, np.ndarray]] = []
    if arguments.shards:
        tasks += synthetic(arguments.shards, arguments.tasks)
    if arguments.data:
        tasks += real(arguments.data, arguments.tables, arguments.splits)
    found: dict[str, list[tuple[float, float, float]]] = {}
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number, (x, n_labeled, y) in enumerate(tasks, start=1):
            kept, n_labeled, y = thin(n_labeled, y, arguments.rows)
            if y.min() == y.max():
                continue
            for variant, score in variants(arguments, Path(folder), x[kept], n_labeled).items():
                found.setdefault(variant, []).append(measured(y, score))
            seconds = time.monotonic() - start
            print(f"{number} of {len(tasks)} tasks, {seconds:.0f} s", file=sys.stderr, flush=True)
    if not found:
        raise InputError("no task has both classes among its unlabelled rows: take more --rows")
    widths = [x.shape[1] for x, *_ in tasks]
    n_measured = len(next(iter(found.values())))
    print(f"{n_measured} tasks of {min(widths)} to {max(widths)} columns\n")
    print("| what | mean AUC | against all columns at once | Brier score | error of the share |")
    print("|---|---|---|---|---|")
    for variant, values in found.items():
        auc, brier, share = np.array(values).T
        gain = auc - np.array(found["all columns at once"])[:, 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        rest = "– | –" if variant == _TREES else f"{brier.mean():.4f} | {share.mean():.3f}"
        print(f"| {variant} | {auc.mean():.4f} | {gain.mean():+.4f} ± {error:.4f} | {rest} |")


def measured(y: np.ndarray, log_odds: np.ndarray) -> tuple[float, float, float]:
    """AUC, Brier score and error of the share of scores [n_u] for classes y [n_u]."""
    p = expit(log_odds)
    return roc_auc_score(y, log_odds), ((p - y) ** 2).mean(), abs(p.mean() - y.mean())


def variants(arguments, folder: Path, x: np.ndarray, n_labeled: int) -> dict[str, np.ndarray]:
    """Scores [n_u] by the handling of the columns of x [n, d]."""
    s = np.arange(len(x)) < n_labeled

    def score(
        x: np.ndarray,
        k: int,
        columns: Literal["random", "relevant"] = "random",
        scaling: str = "quantile",
    ) -> np.ndarray:
        model = with_range(arguments.model, folder, {"n_features": k})
        fitted = PUICLClassifier(
            model, n_estimators=1, columns=columns, preprocessing=None, scalings=(scaling,)
        )
        return fitted.fit(x, s).estimator_log_odds_[0]

    found = {"all columns at once": score(x, x.shape[1])}
    axes = fit_scaling(x, "principal")(x).astype(float)
    best = np.argsort(-column_relevance(x, s), kind="stable")
    for k in arguments.k:
        found |= {
            f"the first {k} alone": score(x[:, :k], k),
            f"random subsets of {k}": score(x, k),
            f"the {k} most relevant alone": score(x[:, best[:k]], k),
            f"subsets of {k} by relevance": score(x, k, "relevant"),
            f"principal axes, random subsets of {k}": score(axes, k, scaling="standard"),
            f"the first {k} principal axes alone": score(axes[:, :k], k, scaling="standard"),
        }
    scores, _ = cross_fitted(x, s, s, np.random.default_rng(0))
    return found | {_TREES: scores[~s]}


def synthetic(folder: str, most: int) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """Yield features, number of labelled rows and classes of the others, of synthetic tasks."""
    shards = open_shards(folder)
    places = [(part, n) for part in shards.published_parts() for n in shards.positions(part)]
    for part, position in spread(places, most):
        batch = shards.part(part)[position]
        yield batch.x[0].astype(float), batch.n_labeled, batch.y[0]


def real(
    folder: Path, names: list[str] | None, splits: int
) -> Iterator[tuple[np.ndarray, int, np.ndarray]]:
    """Yield the same of real tables, several splits of each."""
    for table in load_collection(folder, names).tables.values():
        for seed in range(splits):
            task = split_pu(table.x, table.positive, seed)
            x = TablePreprocessor().fit_transform(task.x)
            yield x, task.n_labeled, task.y


if __name__ == "__main__":
    main()
