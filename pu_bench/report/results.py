"""Read a results folder and compute the figures for tables and pictures."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from pu_bench.data import PAPER, TASKS
from pu_bench.run.files import (
    DETAIL_COLUMNS,
    DETAILS,
    ENVIRONMENT,
    FACTS,
    RESULT_COLUMNS,
    RESULTS,
    RUN,
    read_environments,
    read_facts,
)
from pu_bench.run.metrics import METRICS
from puicl_config import InputError

CHANCE = 0.5
# Tasks whose classes are rules. The default weights' prior has many such tasks because these had
# come out weak (docs/weights.md, "Looks at the exam"), so the other tasks say more of new tables.
MODELLED_ON = ("monk1", "monk2", "monk3", "car")
# Columns to read as text, even if they look like numbers: a table may be called 2019.
_NAMES = dict.fromkeys(("task", "pool", "method", "rows_seen", "error"), str)
# Metrics of which lower is better.
LOSSES = ("brier", "ece", "pi_error", "seconds")
_PUBLISHED = Path(__file__).parent / "paper.csv"


@dataclass(frozen=True)
class Results:
    """A folder's cells. `cells`: results.csv and details.csv joined, one row for each cell.

    `run` and `environments` are the contents of run.json and environment.json. `tasks` are in the
    collection's order. `methods` are by falling mean AUC, but those without a success on some task
    come last. `references` are the methods that see hidden labels or the true class prior, in the
    same order.
    """

    cells: pd.DataFrame
    run: dict[str, Any]
    environments: list[dict[str, Any]]
    tasks: list[str]
    methods: list[str]
    references: list[str]

    @property
    def is_paper(self) -> bool:
        """Whether these are the paper's 20 tasks."""
        return self.run["collection"] == PAPER

    def task_title(self, task: str) -> str:
        """The task's title, as the paper prints it."""
        return self.run["tables"][task]["title"]

    def title(self, method: str) -> str:
        """The method's name in tables, marked with * if it sees more than P and U."""
        sees = self.run["methods"][method]["sees"]
        return self.run["methods"][method]["title"] + (" *" if sees else "")

    def by_task(self, metric: str) -> pd.DataFrame:
        """Means over repeats: tasks x methods (references last), NaN where no cell succeeded."""
        return self._pivot(metric, "mean")

    def sd_by_task(self, metric: str) -> pd.DataFrame:
        """Standard deviations over repeats, in the form of `by_task`; NaN for fewer than two."""
        return self._pivot(metric, "std")

    def mean_and_sd(self, method: str, metric: str) -> tuple[float, float]:
        """Mean over tasks, and the standard deviation over repeats of that mean.

        The standard deviation is over repeats in which every task succeeded; NaN for fewer than
        two. A failed cell counts as chance in the AUC and is left out of other metrics. For
        `seconds`, a task counts with its shortest repeat, since other load on the machine makes the
        rest longer.
        """
        mine = self.scored[self.scored.method == method].pivot(
            index="task", columns="repeat", values=metric
        )
        whole = mine.loc[:, mine.notna().all()].mean()
        by_task = mine.min(axis=1) if metric == "seconds" else mine.mean(axis=1)
        return float(by_task.mean()), float(whole.std()) if len(whole) > 1 else float("nan")

    def auc_elsewhere(self, method: str) -> float:
        """Mean AUC over the tasks that are not in `MODELLED_ON`; NaN if it has no cell there."""
        mine = self.scored[(self.scored.method == method) & ~self.scored.task.isin(MODELLED_ON)]
        return float(mine.groupby("task").auc.mean().mean())

    @cached_property
    def scored(self) -> pd.DataFrame:
        """`cells` in which failed ones have chance as AUC and NaN as seconds.

        So a failure neither raises a mean AUC nor shortens a mean time.
        """
        failed = self.cells.error.notna()
        auc, seconds = self.cells.auc.where(~failed, CHANCE), self.cells.seconds.where(~failed)
        return self.cells.assign(auc=auc, seconds=seconds)

    @cached_property
    def failed(self) -> pd.DataFrame:
        """Numbers of failed cells: tasks x methods."""
        counts = self.cells.error.notna().groupby([self.cells.task, self.cells.method]).sum()
        return counts.unstack(fill_value=0).reindex(
            index=self.tasks, columns=self.methods + self.references, fill_value=0
        )

    def count(self, method: str) -> dict[str, int]:
        """Numbers of cells, failures, collapses (one score for all rows) and tasks with success."""
        mine = self.cells[self.cells.method == method]
        return {
            "cells": len(mine),
            "failed": int(mine.error.notna().sum()),
            "collapsed": int((mine.collapsed == True).sum()),  # noqa: E712 - it may be missing
            "tasks": int(mine[mine.error.isna()].task.nunique()),
        }

    @cached_property
    def ran(self) -> pd.DataFrame:
        """Whether a method was run on a task, even if it failed: booleans, tasks x methods."""
        cells = pd.crosstab(self.cells.task, self.cells.method) > 0
        return cells.reindex(
            index=self.tasks, columns=self.methods + self.references, fill_value=False
        )

    @cached_property
    def told(self) -> pd.DataFrame:
        """Whether any cell of a method on a task succeeded: booleans, tasks x methods."""
        return self.by_task("auc").notna()

    def judged_auc(self) -> pd.DataFrame:
        """AUC for ranks and tests: tasks x methods that see P and U alone.

        A failed cell counts as 0.5. Means are over those repeats of a task that all these methods
        have. Methods and tasks that lack some of each other are dropped one by one, the one that
        lacks the largest share first, until every method was run on every task. Then methods with
        less than half as many cells as another one are dropped, since the rest would be compared
        only on their few cells.
        """
        judged = self._judged
        return judged.pivot_table("auc", "task", "method", "mean").reindex(
            index=[task for task in self.tasks if task in set(judged.task)],
            columns=[name for name in self.methods if name in set(judged.method)],
        )

    @property
    def judged_repeats(self) -> str:
        """The number of repeats of a task in `judged_auc`, as text: one number or a range."""
        repeats = self._judged.groupby("task").repeat.nunique()
        if repeats.empty:
            return "0"
        least, most = repeats.min(), repeats.max()
        return f"{most}" if least == most else f"{least} to {most}"

    @cached_property
    def _judged(self) -> pd.DataFrame:
        """The cells from which `judged_auc` is computed."""
        ran = self.ran[self.methods]
        while not ran.all(axis=None):
            by_method, by_task = (~ran).mean(axis=0), (~ran).mean(axis=1)
            if by_method.max() > by_task.max():
                ran = ran.drop(columns=by_method.idxmax())
            else:
                ran = ran.drop(index=by_task.idxmax())
        asked = self.scored[self.scored.task.isin(ran.index) & self.scored.method.isin(ran.columns)]
        size = asked.groupby("method").size()
        asked = asked[asked.method.isin(size.index[2 * size >= size.max()])]
        # Keep the repeats that all have: a run may have been stopped, or another asked for more.
        present = asked.groupby(["task", "repeat"]).method.transform("nunique")
        return asked[present == asked.method.nunique()]

    def _pivot(self, metric: str, how: str) -> pd.DataFrame:
        table = self.scored.pivot_table(
            index="task", columns="method", values=metric, aggfunc=how, dropna=False
        )
        table = table.reindex(index=self.tasks, columns=self.methods + self.references)
        some = self.cells[self.cells.error.isna()].groupby(["task", "method"]).size().unstack()
        return table.where(some.reindex_like(table) > 0)


def read_cells(path: Path) -> pd.DataFrame:
    """Read a table of cells, one for each row, as the benchmark writes it."""
    return pd.read_csv(path, keep_default_na=False, na_values=[""], dtype=_NAMES)


def load_results(folder: Path) -> Results:
    """Read what `run_benchmark` wrote.

    Raises `InputError` if the folder holds no results, if its files are damaged or contradict one
    another, or if methods saw different rows of a task.
    """
    for name in (RESULTS, DETAILS, RUN):
        if not (folder / name).is_file():
            raise InputError(f"{folder} holds no results: there is no {name}")
    run = read_facts(folder / RUN, FACTS)
    environments = read_environments(folder / ENVIRONMENT)
    try:
        cells, details = (read_cells(folder / name) for name in (RESULTS, DETAILS))
        for name, table, columns in (
            (RESULTS, cells, RESULT_COLUMNS),
            (DETAILS, details, DETAIL_COLUMNS),
        ):
            if lacks := set(columns) - set(table.columns):
                raise ValueError(f"{name} lacks {', '.join(sorted(lacks))}")
        for metric in (*METRICS, "seconds"):
            cells[metric] = cells[metric].astype(float)
        keys = ["task", "method", "repeat"]
        cells = cells.merge(details, "outer", keys, validate="one_to_one", indicator=True)
    except (ValueError, KeyError) as error:
        raise InputError(f"{folder}: {' '.join(str(error).split())}") from None
    if (cells.pop("_merge") != "both").any():
        raise InputError(f"{folder}: {RESULTS} and {DETAILS} hold different cells")
    if cells.empty:
        raise InputError(f"{folder} holds no finished cell")
    for column, known in (("method", "methods"), ("task", "tables")):
        strangers = set(cells[column]) - set(run[known])
        if strangers:
            raise InputError(f"{folder}: {RUN} says nothing of the {column} {min(strangers)}")
    rows = cells.groupby(["task", "repeat"]).rows_seen.nunique()
    if (rows > 1).any():
        task, repeat = rows.index[rows > 1][0]
        raise InputError(
            f"{folder}: methods saw different rows of {task}, repeat {repeat}, so their results do "
            "not compare; run them again in another --out"
        )
    return _arranged(cells, run, environments)


def _arranged(cells: pd.DataFrame, run: dict, environments: list) -> Results:
    present = set(cells.task)
    order = [*TASKS, *run["tables"]] if run["collection"] == PAPER else list(run["tables"])
    scored = cells.auc.where(cells.error.isna(), CHANCE)
    auc = scored.groupby([cells.method, cells.task]).mean().groupby("method").mean()
    n_tasks = cells[cells.error.isna()].groupby("method").task.nunique()
    # Methods that lack tasks come last, since their means do not compare with the others'.
    ranked = sorted(
        auc.index,
        key=lambda name: (n_tasks.get(name, 0) < len(present), -auc[name]),
    )
    return Results(
        cells=cells,
        run=run,
        environments=environments,
        tasks=[task for task in dict.fromkeys(order) if task in present],
        methods=[name for name in ranked if not run["methods"][name]["sees"]],
        references=[name for name in ranked if run["methods"][name]["sees"]],
    )


def published() -> pd.DataFrame:
    """The paper's table of results: task, method, auc, accuracy, f1_negative (as printed)."""
    return pd.read_csv(_PUBLISHED)
