"""`puicl bench`: methods x tasks x repeats in parallel, resumable after any kill."""

import inspect
import json
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from pu_bench.data import PAPER, Collection, Table
from pu_bench.methods import METHODS, Method
from pu_bench.protocol import PUTask, split_pu
from pu_bench.run.cells import Cell, cell_of, refuse_other_rows, run_cell
from pu_bench.run.environment import describe_environment
from pu_bench.run.files import (
    CELLS,
    DETAILS,
    ENVIRONMENT,
    FACTS,
    RESULTS,
    RUN,
    read_environments,
    read_facts,
    read_results,
    refuse_unclaimed,
    write_results,
)
from pu_bench.run.networks import give_way, network_facts
from pu_bench.run.store import CellLog, Record, is_done, only_run_in
from puicl_config import InputError, ProgressReport, write_atomically

# Incremented whenever the same cell would see other rows or be judged differently.
# 2: probabilities that were clipped at 1 no longer tie the rows in AUC.
PROTOCOL = 2


@dataclass(frozen=True)
class Plan:
    """What to run. `methods` are names of the registry; `model` is the path of PUICL's weights.

    `retry_failed`: failed cells are run again. `new_weights`: results of methods whose weights have
    changed are replaced. `skipped`: why other methods are not run, by name.
    """

    collection: Collection
    methods: Sequence[str]
    repeats: int
    model: Path | None = None
    jobs: int = 1
    retry_failed: bool = False
    new_weights: bool = False
    skipped: dict[str, str] = field(default_factory=dict)

    def cells(self) -> Iterator[Cell]:
        """All cells, one whole repeat after the other, so that a stopped run has seen all tasks."""
        for repeat in range(self.repeats):
            for task in self.collection.tables:
                for method in self.methods:
                    yield Cell(task, method, repeat)


def make_method(name: str, model: Path | None) -> Method:
    """Make a method of the registry; `model` is passed to those with a parameter of that name."""
    return _made(METHODS[name], model)


def usable_methods(
    names: Sequence[str] | None, model: Path | None
) -> tuple[list[str], dict[str, str]]:
    """Names of methods that can be run (of all, if None), and for each other one the reason.

    Raises `InputError` for an unknown name, and if a method that was asked for by name cannot be
    run.
    """
    for name in names or ():
        if name not in METHODS:
            raise InputError(f"there is no method {name!r}; there are {', '.join(METHODS)}")
    usable, skipped = [], {}
    for name in names or METHODS:
        problem = _problem(name, model)
        if problem is None:
            usable.append(name)
        elif names:
            raise InputError(f"method {name}: {problem}")
        else:
            skipped[name] = problem
    return list(dict.fromkeys(usable)), skipped


def run_benchmark(
    plan: Plan, out: Path, begun: Callable[[Sequence[Cell]], object] | None = None
) -> list[Record]:
    """Run the cells that `out` lacks; returns the records of the plan's cells, in its order.

    Each finished cell is appended to `out`/cells.jsonl at once, so that a killed run resumes where
    it stopped. `results.csv` and `details.csv` are written from it at the end and when the run is
    stopped; if cells.jsonl is missing, it is restored from them. `begun` is called before the first
    cell with the cells that will be run. Raises `InputError` if `out` holds results of other
    tables, other rows, other weights or another protocol, if it holds results without the run.json
    that identifies them, or if another run is working there.
    """
    log = CellLog(out / CELLS)
    with only_run_in(out):
        _claim(out, plan, log)
        done = log.records(cell_of)
        wanted = list(plan.cells())
        todo = [cell for cell in wanted if not is_done(done.get(cell), plan.retry_failed)]
        refuse_other_rows(out, todo, done.values(), lambda cell: _split(plan, cell))
        if begun:
            begun(todo)
        try:
            run_and_keep("bench", todo, lambda c: (c, _split(plan, c), {}), log, plan, len(wanted))
        finally:
            done = log.records(cell_of)
            write_results(out, list(done.values()))
    return [done[cell] for cell in wanted]


def run_only(cell: Cell, plan: Plan) -> Record:
    """Run a single cell; its figures are the same as in any run, whatever ran before it.

    An exception of the method is printed with its traceback.
    """
    method = make_method(cell.method, plan.model)
    return run_cell(cell, method, _split(plan, cell), failed=traceback.print_exception)


def run_and_keep(
    what: str,
    todo: Sequence[Any],
    asked: Callable[[Any], tuple[Cell, PUTask, dict[str, Any]]],
    log: CellLog,
    plan: Any,
    total: int,
) -> None:
    """Run the `todo` of `total` cells with the `plan`'s model and jobs; log each when finished.

    `asked` maps an item of `todo` to its cell, its rows and further facts for its record; it is
    called as workers become free.
    """
    failed = 0
    with (
        ProgressReport(what, total, "cells", done=total - len(todo)) as progress,
        joblib.parallel_config(backend="loky", inner_max_num_threads=1),
    ):
        parallel = joblib.Parallel(n_jobs=plan.jobs, return_as="generator_unordered", batch_size=1)
        # Pass the class, not the name: workers lack methods that a script added to METHODS.
        work = (
            joblib.delayed(_run_and_keep)(*one, METHODS[one[0].method], plan.model, log)
            for one in map(asked, todo)
        )
        for error in parallel(work) if todo else ():
            failed += error is not None
            progress.advance(note=f"{failed} failed" if failed else "")


def _split(plan: Plan, cell: Cell) -> PUTask:
    table = plan.collection.tables[cell.task]
    return split_pu(table.x, table.positive, cell.split_seed)


def _run_and_keep(
    cell: Cell,
    split: PUTask,
    facts: dict[str, Any],
    kind: Callable[..., Method],
    model: Path | None,
    log: CellLog,
) -> str | None:
    record = {**run_cell(cell, _made(kind, model), split), **facts}
    log.append(record)
    return record["error"]


def _problem(name: str, model: Path | None) -> str | None:
    """Why a method cannot be run here (missing package or weights); None if it can."""
    lacks = [fact for fact in ("title", "reference") if not hasattr(METHODS[name], fact)]
    if lacks:  # a method of one's own
        return f"its class has no {' and no '.join(lacks)}"
    x = np.arange(12.0)[:, np.newaxis]
    try:
        method = make_method(name, model)
        method.check()
        if _takes_weights(METHODS[name]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about this probe's few rows
                method.fit_predict(x[:4], x[4:], 0)
    except InputError as error:
        return str(error)
    return None


def _made(kind: Callable[..., Method], model: Path | None) -> Method:
    return kind(model=model) if model is not None and _takes_weights(kind) else kind()


def _takes_weights(kind: Callable[..., Method]) -> bool:
    return "model" in inspect.signature(kind).parameters


def _claim(out: Path, plan: Plan, log: CellLog) -> None:
    """Record what the folder's results are of, after checking that the plan continues them.

    Raises `InputError` if it does not.
    """
    tables = plan.collection.tables
    now = {
        "protocol": PROTOCOL,
        "collection": plan.collection.name,
        "tables": {
            name: _table_facts(table, plan.collection.name) for name, table in tables.items()
        },
        "methods": {
            name: {
                "title": METHODS[name].title,
                "reference": METHODS[name].reference,
                "is_probability": METHODS[name].is_probability,
                "sees": sorted(METHODS[name].sees),
            }
            for name in plan.methods
        },
        **network_facts(make_method(name, plan.model) for name in plan.methods),
        "unavailable": plan.collection.unavailable,
        "skipped": plan.skipped,
    }
    path = out / RUN
    refuse_unclaimed(out, RUN, (CELLS, RESULTS, DETAILS))
    with log.begun_from(out / RESULTS, lambda _: read_results(out)):
        if path.is_file():
            before = read_facts(path, FACTS)
            now = _continued(before, now, out)
            now = give_way(out, log, before, now, plan.new_weights)
            # No file may hold figures of the old weights once run.json names the new ones.
            write_results(out, list(log.records(cell_of).values()))
    write_atomically(path, (json.dumps(now, indent=1) + "\n").encode())
    _record_environment(out / ENVIRONMENT, plan.jobs)


def _table_facts(table: Table, collection: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"title": table.title, "sha256": table.digest}
    facts["task_sha256"] = table.task_digest
    # For the paper's 20 tables, the pins determine the columns left out.
    if table.left_out and collection != PAPER:
        facts["left_out"] = table.left_out
    return facts


def _continued(before: dict[str, Any], now: dict[str, Any], out: Path) -> dict[str, Any]:
    for key in ("protocol", "collection"):
        if before[key] != now[key]:
            raise InputError(
                f"{out} holds results of {key} {before[key]}, not {now[key]}; give another --out"
            )
    for name, table in now["tables"].items():
        there = before["tables"].get(name, table)
        if there["sha256"] != table["sha256"]:
            raise InputError(f"{out} holds results on another {name} table; give another --out")
        # Older versions did not record task_sha256.
        if there.get("task_sha256", table["task_sha256"]) != table["task_sha256"]:
            raise InputError(
                f"{out} holds results on {name} with another positive class, or other columns "
                "taken for categories; give another --out"
            )
    merged = {key: {**before[key], **now[key]} for key in ("tables", "methods")}
    # Keep the reasons of earlier runs for tasks and methods that are still unavailable.
    for key, had in (("unavailable", "tables"), ("skipped", "methods")):
        lacking = {**before.get(key, {}), **now[key]}
        merged[key] = {name: why for name, why in lacking.items() if name not in merged[had]}
    return {**now, **merged}


def _record_environment(path: Path, jobs: int) -> None:
    """Append to the folder's list of environments where this one differs from the last."""
    before = read_environments(path)
    here = describe_environment(jobs)
    if not before or before[-1] != here:
        write_atomically(path, (json.dumps([*before, here], indent=1) + "\n").encode())
