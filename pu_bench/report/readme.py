"""Generate the README's short table from a results folder.

`python -m pu_bench.report.readme` rewrites the text between the markers in README.md from
results/published, if that exists; with `--check` it only tells by its exit status whether the
README would change.
"""

from pathlib import Path

from pu_bench.report.blocks import Cell, Table, markdown_rows
from pu_bench.report.generated import renew_from_results, renewed
from pu_bench.report.results import Results, load_results, published
from pu_bench.report.statistics import average_ranks
from pu_bench.report.tables import lacks_of, modelled_on, number, seconds
from pu_bench.run.files import RESULTS
from puicl_config import exit_on_input_error

_METRICS = ("accuracy", "f1_negative")


def short_table(results: Results) -> str:
    """Markdown: every method's means, rank and time, and the paper's AUC."""
    printed = published().groupby("method").auc.mean() if results.is_paper else {}
    ranks = average_ranks(results.judged_auc())
    elsewhere = modelled_on(results)
    rows = []
    for name in results.methods + results.references:
        row = [Cell(results.title(name) + lacks_of(results, name))]
        row.append(Cell(number(results.mean_and_sd(name, "auc")[0])))
        row += [Cell(number(results.auc_elsewhere(name)))] * bool(elsewhere)
        row += [Cell(number(results.mean_and_sd(name, metric)[0])) for metric in _METRICS]
        row.append(Cell(number(printed[name]) if name in printed else "–"))
        row.append(Cell(number(ranks[name], 1) if name in ranks else "–"))
        row.append(Cell(seconds(results.mean_and_sd(name, "seconds")[0])))
        rows.append(row)
    head = ["method", "AUC", *["AUC¹"] * bool(elsewhere), "accuracy", "F1 (negative)"]
    head += ["AUC in the paper", "rank", "s a task"]
    repeats = results.cells.repeat.nunique()
    marked = (
        " Methods with * are given hidden labels, or the true share of positives."
        if results.references
        else ""
    )
    return (
        f"{markdown_rows(Table('', head, rows))}\n\n"
        f"Means over {len(results.tasks)} tasks and {repeats} splits of each; rank by AUC over "
        f"{results.judged_repeats} of them; seconds in one thread, each task's least, on several "
        f"kinds of processor.{marked}{elsewhere and f' ¹ {elsewhere}'}"
    )


def with_table(readme: str, folder: Path) -> str:
    """The README with its block renewed from `folder`; raises `InputError` without markers."""
    block = (
        short_table(load_results(folder))
        if (folder / RESULTS).is_file()
        else "The full run of this benchmark has not been made yet."
    )
    return renewed(readme, {"benchmark": block})


@exit_on_input_error
def main() -> None:
    """Command line."""
    renew_from_results(__doc__, Path("README.md"), with_table)


if __name__ == "__main__":
    main()
