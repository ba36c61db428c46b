"""Cross-fitted rivals with predictions averaged over several partitions into folds.

    python benchmarks/repeated_partitions.py --data unseen --results results/unseen --partitions 4

The benchmark's cross-fitted methods use one partition into five folds, as is usual after Elkan and
Noto, while PUICL makes sixteen passes. Here g(x) = P(labelled | x) is averaged over `--partitions`
partitions, of which the first is the benchmark's (its AUC is compared with that in `--results`).
Prints, on the first split of each table of `--data` (a folder as for `puicl bench --data`): mean
AUC with one and with all partitions, how far PUICL is ahead of either, ± the standard error over
tables, and on how many tables. 95 tables take some quarter of an hour on one core.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from how_many import count
from sklearn.metrics import roc_auc_score

from pu_bench.data import load_collection
from pu_bench.methods import METHODS
from pu_bench.methods.crossfit import CrossFitted, cross_fitted
from pu_bench.protocol import split_pu
from pu_bench.run.cells import Cell
from pu_bench.run.files import read_results
from puicl_config import InputError, exit_on_input_error

_METHODS = ("extra_trees", "logistic", "gradient_boosting")
# Seed domain of the further partitions, separate from the benchmark's.
_STEP = 7919


@exit_on_input_error
def main() -> None:
    """Measure and print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True, help="a folder of puicl bench --out")
    parser.add_argument("--partitions", type=count, default=4)
    parser.add_argument("--methods", default=",".join(_METHODS))
    arguments = parser.parse_args()
    known = pd.DataFrame(read_results(arguments.results))
    known = known[known["repeat"] == 0].set_index(["method", "task"])["auc"].astype(float)
    tables = load_collection(arguments.data).tables
    print("| method | one | several | PUICL ahead of one by | on | of several by | on |")
    print("|---" * 7 + "|")
    for name in arguments.methods.split(","):
        method = METHODS.get(name)
        if not (isinstance(method, type) and issubclass(method, CrossFitted)):
            raise InputError(f"{name} is no cross-fitted method: give some of {_METHODS}")
        lines = []
        for task, table in tables.items():
            if (name, task) not in known.index:
                continue
            cell = Cell(task, name, 0)
            split = split_pu(table.x, table.positive, cell.split_seed)
            seeds = [cell.method_seed + _STEP * k for k in range(arguments.partitions)]
            g = [cross_fitted(method().classifier, split.P, split.U, seed)[1] for seed in seeds]
            one, several = (roc_auc_score(split.y, mean) for mean in (g[0], np.mean(g, axis=0)))
            if abs(one - known[name, task]) > 1e-4:
                raise InputError(f"{task}: {name} has an AUC of {one}, not as in the results")
            # Round like the results, so that AUCs that are equal there are equal here.
            lines.append((known["puicl", task], known[name, task], round(several, 6)))
        puicl, *theirs = np.array(lines).T
        parts = [f"{auc.mean():.4f}" for auc in theirs]
        for auc in theirs:
            ahead = puicl - auc
            error = ahead.std(ddof=1) / len(ahead) ** 0.5
            won = (ahead > 0).sum()
            parts += [f"+{ahead.mean():.4f} ± {error:.4f}", f"{won} of {len(ahead)}"]
        print(f"| {METHODS[name].title} | {' | '.join(parts)} |", flush=True)


if __name__ == "__main__":
    main()
