"""The report of sweeps: curves with bands, and the numbers behind them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pu_bench.methods import METHODS
from pu_bench.report.blocks import (
    Block,
    Cell,
    Heading,
    Paragraph,
    Table,
    to_html,
    to_markdown,
)
from pu_bench.report.results import CHANCE, read_cells
from pu_bench.report.style import Picture, colour_of, house_style, new_figure, png_of
from pu_bench.run.files import SWEEP_RESULTS
from pu_bench.sweeps.sweeps import SWEEPS, Sweep
from puicl_config import InputError, write_atomically

METRICS = {"auc": "AUC", "accuracy": "accuracy", "pi_error": "|π̂ - π|"}
PAGE, MARKDOWN, PICTURES = "sweeps.html", "sweeps.md", "figures"


def write_sweep_report(folder: Path) -> Path:
    """Write sweeps.html, sweeps.md and their pictures from sweeps.csv; returns the page's path.

    Raises `InputError` if there are no sweeps.
    """
    if not (folder / SWEEP_RESULTS).is_file():
        raise InputError(f"{folder} holds no sweeps: there is no {SWEEP_RESULTS}")
    cells = read_cells(folder / SWEEP_RESULTS)
    blocks: list[Block] = [Paragraph(_INTRODUCTION)]
    for name in [name for name in SWEEPS if name in set(cells.sweep)]:
        here = cells[cells.sweep == name]
        blocks.append(Heading(f"{name}: {SWEEPS[name].label}"))
        blocks.append(curves(SWEEPS[name], here))
        blocks.append(_numbers(here))
    (folder / PICTURES).mkdir(exist_ok=True)
    for block in blocks:
        if isinstance(block, Picture):
            write_atomically(folder / PICTURES / f"{block.name}.png", block.png)
    title = "PU benchmark: sweeps"
    write_atomically(folder / MARKDOWN, to_markdown(title, blocks, PICTURES).encode())
    write_atomically(folder / PAGE, to_html(title, blocks).encode())
    return folder / PAGE


_INTRODUCTION = (
    "One quantity is varied at a time; else 100 labelled positives, 200 unlabelled rows, half of "
    "them positive, and labels given completely at random. Synthetic tasks are drawn from "
    "held-out shards of the project's prior, real ones from every table with at least 1,000 rows "
    "of each class. Lines are means over tasks, bands 95 % intervals of that mean (1.96 standard "
    "errors over tasks)."
)


def summary(cells: pd.DataFrame, metric: str) -> pd.DataFrame:
    """By kind, method and value: mean over tasks, its standard error, and the number of tasks.

    A task counts with its mean over repeats. A failed cell counts as chance in the AUC and is left
    out of other metrics.
    """
    if metric == "auc":
        cells = cells.assign(auc=cells.auc.where(cells.error.isna(), CHANCE))
    by_task = cells.groupby(["kind", "method", "value", "pool"])[metric].mean().dropna()
    return by_task.groupby(["kind", "method", "value"]).agg(["mean", "sem", "count"])


def curves(sweep: Sweep, cells: pd.DataFrame) -> Picture:
    """Draw AUC, accuracy and error of the class prior against the varied quantity."""
    kinds = sorted(cells.kind.unique(), reverse=True)
    methods = list(dict.fromkeys(cells.method))
    with house_style():
        figure = new_figure(0.7 + 1.9 * len(METRICS))
        grid = figure.subplots(len(METRICS), len(kinds), sharex="col", sharey="row", squeeze=False)
        for row, metric in enumerate(METRICS):
            table = summary(cells, metric)
            for column, kind in enumerate(kinds):
                axes = grid[row, column]
                for method in methods:
                    if (kind, method) in table.index.droplevel("value"):
                        _curve(axes, table.loc[(kind, method)], method, methods)
                if row == 0:
                    axes.set_title(f"{kind} tasks", loc="left")
                if sweep.log:
                    axes.set_xscale("log")
                    names = [f"{value:g}" for value in sweep.values]
                    axes.set_xticks(sweep.values, names, fontsize=7)
                    axes.minorticks_off()
            grid[row, 0].set_ylabel(METRICS[metric])
        figure.supxlabel(sweep.label, fontsize=8.5)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
        png = png_of(figure)
    return Picture(
        f"sweep_{sweep.name}",
        f"AUC, accuracy and error of the estimated class prior against {sweep.label}.",
        f"Curves of {len(methods)} methods against {sweep.label}.",
        png,
    )


def _curve(axes, table: pd.DataFrame, method: str, methods: Sequence[str]) -> None:
    colour = colour_of(method, list(methods))
    half = 1.96 * table["sem"].fillna(0)
    axes.plot(
        table.index, table["mean"], color=colour, marker="o", ms=3, lw=1.4,
        label=METHODS[method].title if method in METHODS else method,
    )  # fmt: skip
    axes.fill_between(
        table.index, table["mean"] - half, table["mean"] + half, color=colour, alpha=0.15, lw=0
    )


def _numbers(cells: pd.DataFrame) -> Table:
    tables = {metric: summary(cells, metric) for metric in METRICS}
    failed = cells[cells.error.notna()].groupby(["kind", "method", "value"]).size()
    told = cells[cells.error.isna()].groupby(["kind", "method", "value"]).pool.nunique()
    rows = []
    for kind, method, value in sorted(set(zip(cells.kind, cells.method, cells.value, strict=True))):
        row = [Cell(METHODS[method].title if method in METHODS else method)]
        row += [Cell(kind), Cell(f"{value:g}")]
        for table in tables.values():
            if (kind, method, value) not in table.index:
                row.append(Cell("–"))
                continue
            mean, sem, _ = table.loc[(kind, method, value)]
            row.append(Cell(f"{mean:.3f}", spread=f"± {sem:.3f}" if np.isfinite(sem) else ""))
        row.append(Cell(str(told.get((kind, method, value), 0))))
        row.append(Cell(str(failed.get((kind, method, value), 0))))
        rows.append(row)
    return Table(
        "Mean over tasks ± standard error. Tasks are those with a success; a failed cell's AUC "
        "counts as 0.5.",
        ["method", "tasks from", "value", *METRICS.values(), "tasks", "failed"],
        rows,
    )
