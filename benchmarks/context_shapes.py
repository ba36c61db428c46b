"""How many rows the network should read together: mean AUC by the shape of its contexts.

    python benchmarks/context_shapes.py --model runs/cpu/model.safetensors --data DIR

For tables with few or many labelled positives and unlabelled rows, a single pass is made with
contexts of different shapes, by copying the weights' card with another `trained_range`. Folder and
splits: see `real_tables.py`; each split is cut to the stated numbers of labelled and unlabelled
rows. The last column scores the same unlabelled rows as if they were new: against the one context
that `fit` keeps, which may already contain them. The defaults take some five minutes on one core;
`--most 100` takes every table there is.
"""

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np
from how_many import count
from real_tables import read_tables, split_rows, table_names, weights_file, with_range
from sklearn.metrics import roc_auc_score

from puicl_config import exit_on_input_error
from puicl_model import PUICLClassifier

# (labelled, unlabelled) rows kept of a split -> limits (labelled, unlabelled) of a context to try.
TRIED = {
    (200, 800): [(200, 800), (200, 400), (200, 200), (100, 800), (100, 400), (100, 200), (50, 200)],
    (10, 800): [(10, 800), (10, 400), (10, 200), (10, 80), (10, 40)],
    (5, 200): [(5, 200), (5, 100), (5, 40), (5, 20)],
    (200, 40): [(200, 40), (100, 40), (80, 40), (40, 40)],
}


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=count, default=1)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument(
        "--most", type=count, default=3, help="maximum tables for each number of rows"
    )
    arguments = parser.parse_args()
    arguments.model = weights_file(arguments.model)
    table_names(arguments.data, arguments.tables)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        for there, limits in TRIED.items():
            measure(arguments, Path(folder), there, limits)


def measure(arguments, folder: Path, there: tuple[int, int], limits: list[tuple[int, int]]) -> None:
    """Print one block: tables cut to `there` rows, read in contexts of each of `limits`."""
    found: dict[tuple[int, int], list[tuple[float, float]]] = {limit: [] for limit in limits}
    for _, table, positive in read_tables(arguments.data, arguments.tables):
        if len(found[limits[0]]) >= arguments.most * arguments.splits:
            break
        for seed in range(arguments.splits):
            x, s, y = split_rows(table, positive, seed)
            n_labeled = int(s.sum())
            labeled = np.arange(n_labeled)[: there[0]]
            unlabeled = n_labeled + np.arange(len(y))[: there[1]]
            rows = np.concatenate([labeled, unlabeled])
            x, s, y = x.iloc[rows].reset_index(drop=True), s[rows], y[: there[1]]
            if len(labeled) < 0.7 * there[0] or len(y) < 0.7 * there[1]:
                continue
            for limit in limits:
                shape = {"n_labeled": limit[0], "n_unlabeled": limit[1], "eta": [0.0001, 10_000]}
                model = with_range(arguments.model, folder, shape)
                fitted = PUICLClassifier(model, n_estimators=1, random_state=seed).fit(x, s)
                # Not `predict_proba`, which would recognise them as rows of the fitted table.
                new = fitted._new_rows(
                    fitted._preprocess(x.iloc[len(labeled) :], reset=False), fitted.batch_rows
                ).mean(axis=0)
                found[limit].append(
                    (roc_auc_score(y, fitted.unlabeled_proba_), roc_auc_score(y, new))
                )
    n = len(found[limits[0]])
    if not n:
        print(f"\n{there[0]} labelled, {there[1]} unlabelled rows: no table has as many")
        return
    print(f"\n{there[0]} labelled, {there[1]} unlabelled rows ({n} tables times splits)\n")
    print("| labelled, unlabelled in a context | mean AUC | against the first | as new rows |")
    print("|---|---|---|---|")
    first = np.array(found[limits[0]])
    for limit, pairs in found.items():
        values = np.array(pairs)
        gain = values[:, 0] - first[:, 0]
        error = gain.std(ddof=1) / np.sqrt(n)
        print(
            f"| {limit[0]}, {limit[1]} | {values[:, 0].mean():.4f} | {gain.mean():+.4f} ± "
            f"{error:.4f} | {values[:, 1].mean():.4f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
