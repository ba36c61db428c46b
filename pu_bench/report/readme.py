"""The README's short table, out of a results folder and never typed.

`python -m pu_bench.report.readme` rewrites what stands between the markers in README.md from
results/published, if that is there; with `--check` it only says whether it would change.
"""

import argparse
import sys
from pathlib import Path

from pu_bench.report.blocks import Cell, Table, markdown_rows
from pu_bench.report.results import Results, load_results, published
from pu_bench.report.statistics import average_ranks
from pu_bench.report.tables import number, seconds
from pu_bench.run.files import RESULTS
from puicl_config import InputError, exit_on_input_error, write_atomically

BEGIN, END = "<!-- benchmark: generated -->", "<!-- /benchmark -->"
_METRICS = ("auc", "accuracy", "f1_negative")


def short_table(results: Results) -> str:
    """Markdown: every method's means, its rank and time, beside the paper's AUC."""
    printed = published().groupby("method").auc.mean() if results.is_paper else {}
    ranks = average_ranks(results.judged_auc())
    rows = []
    for name in results.methods + results.references:
        row = [Cell(results.title(name))]
        row += [Cell(number(results.mean_and_sd(name, metric)[0])) for metric in _METRICS]
        row.append(Cell(number(printed[name]) if name in printed else "–"))
        row.append(Cell(number(ranks[name], 1) if name in ranks else "–"))
        row.append(Cell(seconds(results.mean_and_sd(name, "seconds")[0])))
        rows.append(row)
    head = ["method", "AUC", "accuracy", "F1 (negative)", "AUC in the paper", "rank", "s a task"]
    repeats = results.cells.repeat.nunique()
    marked = " Methods with * are given hidden labels." if results.references else ""
    return (
        f"{markdown_rows(Table('', head, rows))}\n\n"
        f"Means over {len(results.tasks)} tasks and {repeats} splits of each; rank by AUC; seconds "
        f"in one thread.{marked}"
    )


def with_table(readme: str, folder: Path) -> str:
    """The README with the block of `folder`'s results; raises `InputError` without markers."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"the README lacks the markers {BEGIN} and {END}")
    block = (
        short_table(load_results(folder))
        if (folder / RESULTS).is_file()
        else "The full run of this benchmark has not been made yet."
    )
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


@exit_on_input_error
def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("readme", nargs="?", type=Path, default=Path("README.md"))
    parser.add_argument("--results", type=Path, default=Path("results/published"))
    parser.add_argument("--check", action="store_true", help="only exit with 1 if it would change")
    arguments = parser.parse_args()
    old = arguments.readme.read_text(encoding="utf-8")
    new = with_table(old, arguments.results)
    if arguments.check:
        sys.exit(old != new)
    write_atomically(arguments.readme, new.encode())


if __name__ == "__main__":
    main()
