"""Compare the methods of a benchmark's results with one of them, with errors over tables.

    python benchmarks/paired_methods.py results/unseen --reference puicl

Prints one line for each method, over the tables and splits that both have: mean AUC, accuracy,
Brier score and |error of the share|; how far the reference is ahead in AUC, ± the standard error
over tables; on how many tables it is ahead; and the p-value of Wilcoxon's signed-rank test over
tables (two-sided, uncorrected: the folder's `report.md` has Holm's correction).
"""

import argparse
from pathlib import Path

import pandas as pd
from how_many import count
from scipy.stats import wilcoxon

from pu_bench.methods import METHODS
from pu_bench.run.files import read_results
from puicl_config import InputError, exit_on_input_error

_FIGURES = ["auc", "accuracy", "brier", "pi_error"]


@exit_on_input_error
def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="a folder of `puicl bench --out`")
    parser.add_argument("--reference", default="puicl", choices=METHODS)
    parser.add_argument(
        "--repeats", type=count, help="use only this many splits of each table (default: all)"
    )
    arguments = parser.parse_args()
    cells = pd.DataFrame(read_results(arguments.results))
    if arguments.repeats is not None:
        cells = cells[cells["repeat"] < arguments.repeats]
    if arguments.reference not in set(cells["method"]):
        raise InputError(f"{arguments.results} has no cells of {arguments.reference}")
    title = METHODS[arguments.reference].title
    print(
        f"| method | tables | AUC | accuracy | Brier | share off by | {title} ahead by | on | p |"
    )
    print("|---" * 9 + "|")
    for line in sorted(lines(cells, arguments.reference), key=lambda line: line[2], reverse=True):
        print(f"| {' | '.join(line)} |")


def lines(cells: pd.DataFrame, reference: str) -> list[list[str]]:
    """The entries of each method's line. `cells` has a row for each table, method and split."""
    key = ["task", "repeat"]
    by_method = {name: group.set_index(key) for name, group in cells.groupby("method")}
    ours = by_method[reference]
    found = []
    for name, theirs in by_method.items():
        both = ours.index.intersection(theirs.index)
        if not len(both):
            continue
        means = theirs.loc[both, _FIGURES].astype(float).groupby("task").mean()
        ahead = (ours.loc[both, "auc"] - theirs.loc[both, "auc"]).groupby("task").mean()
        figures = [
            f"{means[figure].mean():.{digits}f}" if means[figure].notna().any() else "–"
            for figure, digits in zip(_FIGURES, (4, 3, 3, 3), strict=True)
        ]
        compared = ["", "", ""]
        if name != reference:
            p = wilcoxon(ahead).pvalue if ahead.any() else 1.0
            compared = [
                f"{ahead.mean():+.4f} ± {ahead.sem():.4f}",
                f"{(ahead > 0).sum()} of {len(ahead)}",
                "< .001" if p < 0.001 else f"{p:.3f}"[1:] if p < 1 else "1",
            ]
        found.append([METHODS[name].title, str(len(means)), *figures, *compared])
    return found


if __name__ == "__main__":
    main()
