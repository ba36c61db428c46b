"""How far a handful of labelled rows goes: networks and rivals with 5 to 50 labelled positives.

    python benchmarks/few_labeled.py --data DIR --models default M.safetensors --rivals bagging_pu

Draws `--draws` tasks from every table of DIR (a folder as for `puicl bench --data`). Each has the
stated number of labelled positives (at most half of all) and 200 unlabelled rows, or as many as the
table has; a quarter, half or three quarters of them are positive, in turn. Prints means over tables
of AUC, accuracy and the error of the share of positives; networks make a single pass. After +-, the
standard error over tables and draws of the difference from the first network. Always answering one
half would miss the share by .167.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from how_many import count
from joblib import Parallel, delayed
from real_tables import weights_file
from sklearn.metrics import roc_auc_score

from pu_bench.data import load_collection
from pu_bench.methods import METHODS
from pu_bench.methods.in_context import PUICLSinglePass
from puicl_config import exit_on_input_error

_LABELED = (5, 10, 20, 50)
_UNLABELED = 200
# Shares of positives, by draw in turn: one half alone would reward caution.
_SHARES = (0.25, 0.5, 0.75)


@exit_on_input_error
def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", nargs="+", default=["default"])
    parser.add_argument("--rivals", nargs="*", default=[], choices=sorted(METHODS))
    parser.add_argument("--draws", type=count, default=3)
    parser.add_argument("--jobs", type=count, default=1)
    arguments = parser.parse_args()
    models, rivals = arguments.models, arguments.rivals
    for model in models:
        weights_file(model)
    tables = load_collection(arguments.data).tables.values()
    tasks = [
        (table, n, draw) for n in _LABELED for table in tables for draw in range(arguments.draws)
    ]
    found = Parallel(n_jobs=arguments.jobs)(
        delayed(_figures)(*task, models, rivals) for task in tasks
    )
    figures = np.array(found).reshape(len(_LABELED), -1, len(models) + len(rivals), 3)
    print("| labelled | method | AUC | accuracy | error of the share |")
    print("|---|---|---|---|---|")
    differences = figures - figures[:, :, :1]
    errors = differences.std(axis=1, ddof=1) / np.sqrt(figures.shape[1])
    for n, rows, spreads in zip(_LABELED, figures.mean(axis=1), errors, strict=True):
        for place, name in enumerate([*models, *rivals]):
            cells = [f"{mean:.3f}" for mean in rows[place]]
            if place:
                cells = [f"{c} ± {e:.3f}" for c, e in zip(cells, spreads[place], strict=True)]
            print(f"| {n} | {name} |", " | ".join(cells), "|")


def _figures(table, n_labeled: int, draw: int, models: list, rivals: list) -> list[tuple]:
    """AUC, accuracy and error of the share of each network and rival on one draw."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([n_labeled, draw])
    positives = rng.permutation(np.flatnonzero(table.positive))
    negatives = rng.permutation(np.flatnonzero(~table.positive))
    share = _SHARES[draw % len(_SHARES)]
    n_labeled = min(n_labeled, len(positives) // 2)
    rest = positives[n_labeled:]
    total = min(_UNLABELED, int(len(rest) / share), int(len(negatives) / (1 - share)))
    of_them = min(max(round(share * total), 1), total - 1)
    rows = np.concatenate([rest[:of_them], negatives[: total - of_them]])
    y = table.positive[rows].astype(int)
    methods = [PUICLSinglePass(model) for model in models] + [METHODS[name]() for name in rivals]
    figures = []
    for method in methods:
        told = method.fit_predict(table.x[positives[:n_labeled]], table.x[rows], draw)
        estimate = told.class_prior if told.class_prior is not None else np.nan
        figures.append(
            (roc_auc_score(y, told.order), (told.label == y).mean(), abs(estimate - y.mean()))
        )
    return figures


if __name__ == "__main__":
    main()
