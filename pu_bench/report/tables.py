"""The report's tables."""

from typing import Any

import numpy as np
import pandas as pd

from pu_bench.report.blocks import Cell, Table
from pu_bench.report.results import LOSSES, MODELLED_ON, Results, published
from pu_bench.report.statistics import FEWEST_TASKS, against, all_pairs, average_ranks

SUMMARY = ("auc", "accuracy", "f1_negative", "balanced_accuracy", "brier", "ece", "pi_error")
NAMES = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "f1_negative": "F1 (negative)",
    "f1_positive": "F1 (positive)",
    "balanced_accuracy": "balanced accuracy",
    "brier": "Brier",
    "ece": "ECE",
    "pi_error": "|π̂ - π|",
    "seconds": "s a task",
}


def number(value: float, digits: int = 3) -> str:
    """A number with fixed digits, or a dash if undefined."""
    return "–" if not np.isfinite(value) else f"{value:.{digits}f}"


def signed(value: float) -> str:
    """A difference with its sign and 3 digits, or a dash if undefined."""
    return "–" if not np.isfinite(value) else f"{value:+.3f}"


def seconds(value: float) -> str:
    """A time in seconds to three significant digits, whole from 100 on; a dash if undefined."""
    if not np.isfinite(value):
        return "–"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def lacks_of(results: Results, method: str) -> str:
    """Suffix for the name of a method that lacks tasks, repeats or cells; else ""."""
    told, repeats = results.told[method], results.cells.groupby("method").repeat.nunique()
    lacks = [] if told.all() else [f"{told.sum()} of {len(told)} tasks"]
    if repeats[method] < repeats.max():
        lacks.append(f"{repeats[method]} of {repeats.max()} repeats")
    if failed := results.failed[method].sum():
        lacks.append(f"{failed} of {results.count(method)['cells']} cells failed")
    return f" ({', '.join(lacks)})" if lacks else ""


def modelled_on(results: Results) -> str:
    """Say which tasks are left out of `auc_elsewhere`, and why; "" if none or all are."""
    there = [task for task in results.tasks if task in MODELLED_ON]
    others = len(results.tasks) - len(there)
    if not results.is_paper or not there or not others:
        return ""
    *titles, last = (results.task_title(task) for task in there)
    named = f"{', '.join(titles)} and {last}" if titles else last
    return (
        f"Without {named}, whose classes are rules: the default weights' prior has many such tasks "
        "because these tables had come out weak (none was trained on). "
        f"{'The other one says' if others == 1 else f'The other {others} say'} more of tables like "
        "yours."
    )


def summary(results: Results) -> Table:
    """Table of every method's means over tasks, its rank, and its failed and collapsed cells."""
    order = results.methods + results.references
    ranks = average_ranks(results.judged_auc())
    figures = {
        metric: {name: results.mean_and_sd(name, metric) for name in order}
        for metric in (*SUMMARY, "seconds")
    }
    elsewhere = modelled_on(results)
    everywhere = [name for name in results.methods if not lacks_of(results, name)]
    best = {
        metric: _best(metric, [figures[metric][name][0] for name in everywhere])
        for metric in figures
    }
    rows = []
    for name in order:
        count = results.count(name)
        row = [Cell(results.title(name) + lacks_of(results, name))]
        for metric in SUMMARY:
            mean, sd = figures[metric][name]
            bold = name in everywhere and _is_best(mean, best[metric])
            spread = f"± {sd:.3f}" if np.isfinite(sd) else ""
            row.append(Cell(number(mean), bold, spread))
            if metric == "auc" and elsewhere:
                row.append(Cell(number(results.auc_elsewhere(name))))
        row.append(Cell(number(ranks[name], 2) if name in ranks else "–"))
        row.append(Cell(seconds(figures["seconds"][name][0])))
        row += [Cell(str(count[key])) for key in ("failed", "collapsed", "cells")]
        rows.append(row)
    head = ["method", *(NAMES[metric] for metric in SUMMARY), "rank", "s a task"]
    head[2:2] = ["AUC¹"] * bool(elsewhere)
    return Table(
        "Means over tasks ± standard deviation over repeats of that mean (of seconds, each task's "
        f"least repeat); rank: average rank by AUC over {results.judged_repeats} repeats of each; "
        "failed and collapsed (one score for all rows) count cells, and a failed one's AUC counts "
        "as 0.5. Bold: best; methods that failed somewhere, and those with *, which see more than "
        "labelled positives and unlabelled rows, take no part." + (elsewhere and f" ¹ {elsewhere}"),
        [*head, "failed", "collapsed", "cells"],
        rows,
        rules=frozenset({len(results.methods)}),  # above the references, if any
    )


def by_task(results: Results, metric: str) -> Table:
    """Table of one metric on every task: mean ± standard deviation over repeats."""
    mean, sd = results.by_task(metric), results.sd_by_task(metric)
    order = [name for name in mean.columns if mean[name].notna().any()]
    rows = []
    for task in results.tasks:
        able = [name for name in results.methods if not results.failed.loc[task, name]]
        best = _best(metric, [mean.loc[task, name] for name in able])
        row = [Cell(results.task_title(task))]
        for name in order:
            value, spread = mean.loc[task, name], sd.loc[task, name]
            row.append(
                Cell(
                    number(value),
                    name in able and _is_best(value, best),
                    f"± {spread:.3f}" if np.isfinite(spread) else "",
                )
            )
        rows.append(row)
    return Table(
        f"{_start(metric)} by task, mean ± standard deviation over repeats; bold: best in the row.",
        ["task", *(results.title(name) for name in order)],
        rows,
    )


def beside_the_paper(results: Results, metric: str) -> Table | None:
    """Table of our means, the paper's printed values and differences; None if none are common."""
    paper = published().pivot(index="task", columns="method", values=metric)
    order = [
        name
        for name in ("puicl", "empu", "vpu", "ulsif", "ted")
        if name in results.methods and paper[name].notna().any()
    ]
    if not order:
        return None
    ours = results.by_task(metric)
    tasks = [task for task in results.tasks if task in paper.index]
    rows = [[Cell(results.task_title(task))] for task in tasks] + [[Cell("Average")]]
    for name in order:
        mine, theirs = ours.loc[tasks, name], paper.loc[tasks, name]
        both = mine.notna() & theirs.notna()
        last = mine[both].mean(), theirs[both].mean()
        for row, pair in zip(rows, [*zip(mine, theirs, strict=True), last], strict=True):
            a, b = (round(value, 3) for value in pair)  # as the paper prints
            row += [Cell(number(a), bold=a >= b), Cell(number(b), bold=b > a), Cell(signed(a - b))]
    return Table(
        f"{_start(metric)}: ours, the paper's printed value, and the difference. Bold: the higher "
        "of the two.",
        ["task", *(["ours", "paper", "diff"] * len(order))],
        rows,
        groups=[("", 1), *((results.title(name), 3) for name in order)],
        rules=frozenset({len(tasks)}),
    )


def against_one(results: Results, method: str) -> Table:
    """Table of paired tests of one method against each other one.

    Over all tasks, and, if enough remain, over those that are not in `MODELLED_ON`.
    """
    scores = results.judged_auc()
    rows = [
        [
            Cell(results.title(row.method)),
            _record(row),
            Cell(signed(row.median)),
            Cell(_p(row.p)),
            _holm(row),
        ]
        for row in against(scores, method).itertuples()
    ]
    head = ["method", "wins / ties / losses", "median difference", "p", "p, Holm"]
    elsewhere, note = scores[~scores.index.isin(MODELLED_ON)], ""
    if modelled_on(results) and FEWEST_TASKS <= len(elsewhere) < len(scores):
        head += ["wins / ties / losses¹", "p, Holm¹"]
        for row, tests in zip(rows, against(elsewhere, method).itertuples(), strict=True):
            row += [_record(tests), _holm(tests)]
        note = f" ¹ The same over the {len(elsewhere)} tasks whose classes are no rules."
    return Table(
        f"{results.title(method)} against each other method by AUC over {len(scores)} "
        f"tasks ({results.judged_repeats} repeats of each): Wilcoxon signed-rank tests "
        f"(two-sided), Holm's correction over these {len(rows)} comparisons; bold: p < 0.05 after "
        f"it. Positive medians are for {results.title(method)}.{note}",
        head,
        rows,
    )


def pair_matrix(results: Results) -> Table:
    """Table of the Holm-adjusted p-values of all pairs."""
    p = all_pairs(results.judged_auc())
    order = list(average_ranks(results.judged_auc()).index)
    rows = [
        [
            Cell(results.title(a)),
            *(Cell("" if a == b else _p(p.loc[a, b]), bold=p.loc[a, b] < 0.05) for b in order),
        ]
        for a in order
    ]
    return Table(
        "All pairs: Holm's p of Wilcoxon signed-rank tests by AUC; the family is all pairs.",
        ["", *(results.title(name) for name in order)],
        rows,
    )


def failures(results: Results) -> Table | None:
    """Table of all errors with their numbers of cells; None if no cell failed."""
    failed = results.cells[results.cells.error.notna()]
    if failed.empty:
        return None
    counted = failed.groupby(["method", "error"]).agg(n=("task", "size"), tasks=("task", "unique"))
    rows = [
        [
            Cell(results.title(method)),
            Cell(str(row.n)),
            Cell(", ".join(sorted(row.tasks)), prose=True),
            Cell(str(error), prose=True),
        ]
        for (method, error), row in counted.iterrows()
    ]
    return Table("Failed cells by error.", ["method", "cells", "tasks", "error"], rows)


def _best(metric: str, values: list[float]) -> float:
    known = pd.Series(values).dropna().round(3)
    if known.empty:
        return float("nan")
    return float(known.min() if metric in LOSSES else known.max())


def _is_best(value: float, best: float) -> bool:
    return bool(np.isfinite(value) and round(value, 3) == best)


def _start(metric: str) -> str:
    """The metric's name at the start of a sentence."""
    return NAMES[metric][0].upper() + NAMES[metric][1:]


def _record(tests: Any) -> Cell:
    return Cell(f"{tests.wins} / {tests.ties} / {tests.losses}")


def _holm(tests: Any) -> Cell:
    return Cell(_p(tests.holm), bold=tests.holm < 0.05)


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 0.001 else "< 0.001"
