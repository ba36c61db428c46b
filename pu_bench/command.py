"""The implementation of `puicl bench`, without its argument parser."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pu_bench.data import left_out_words, load_collection
from pu_bench.methods import METHODS
from pu_bench.report import write_report
from pu_bench.run import Cell, Plan, run_benchmark, run_only, usable_methods
from pu_bench.run.cells import cell_of
from pu_bench.run.environment import other_than_here
from pu_bench.run.files import (
    CELLS,
    ENVIRONMENT,
    RESULTS,
    SWEEP_RESULTS,
    read_environments,
    read_results,
    to_six_digits,
)
from pu_bench.run.metrics import METRICS
from pu_bench.run.store import CellLog, Record
from pu_bench.sweeps import (
    COMMAND,
    SWEEPS,
    SweepPlan,
    run_sweeps,
    shard_pools,
    table_pools,
    write_sweep_report,
)
from puicl_config import InputError, counted, duration, visible
from puicl_model import find_weights

# The strongest methods of the published run that take at most two seconds a task (VPU takes five).
SWEEP_METHODS = ("puicl", "extra_trees", "bagging_pu", "nnpu")


def bench(
    data: Path | None,
    methods: Sequence[str] | None,
    tasks: Sequence[str] | None,
    repeats: int,
    out: Path,
    model: Path | None,
    jobs: int | None,
    *,
    retry_failed: bool = False,
    new_weights: bool = False,
) -> None:
    """Run the cells that `out` lacks, write its report, and print a summary.

    Raises `InputError` if every cell failed, and as `make_plan` and `run_benchmark` do.
    """
    again = {"retry_failed": retry_failed, "new_weights": new_weights}
    plan = make_plan(data, methods, tasks, repeats, model, jobs, **again)
    computed: list[Cell] = []
    records = run_benchmark(plan, out, begun=computed.extend)
    page = write_report(out)
    failed = sum(record["error"] is not None for record in records)
    collapsed = sum(bool(record["collapsed"]) for record in records)
    busy = sum(record["seconds"] for record in records)
    print(
        f"{out}: {counted(len(records), 'cell')}, {failed} failed, {collapsed} with one score for "
        f"all rows; {_news(records, computed)}, {duration(busy)} of computing in all; "
        f"report: {page}"
    )
    if failed == len(records):
        one = records[0]
        raise InputError(
            f"every cell failed, such as {one['method']} on {one['task']}: {one['error']} "
            "(the report lists all errors)"
        )


def report(folder: Path) -> None:
    """Write the reports of the results, the sweeps or both in a folder.

    Raises `InputError` if it holds neither.
    """
    held = [
        (name, write)
        for name, write in ((RESULTS, write_report), (SWEEP_RESULTS, write_sweep_report))
        if (folder / name).is_file()
    ]
    if not held:
        raise InputError(f"{folder} holds no results: there is no {RESULTS} and no {SWEEP_RESULTS}")
    for _, write in held:
        print(f"report: {write(folder)}")


def only(text: str, data: Path | None, model: Path | None, out: Path) -> bool:
    """Run a single cell, print its record, and compare it with the one in `out`, if any.

    Returns False if the two differ. Raises `InputError` if the cell cannot be run.
    """
    cell = parse_cell(text)
    plan = make_plan(data, [cell.method], [cell.task], 1, model, 1)
    if cell.task not in plan.collection.tables:
        raise InputError(
            f"task {cell.task} is not available: {plan.collection.unavailable[cell.task]}"
        )
    record = run_only(cell, plan)
    print(json.dumps(record, indent=1))
    log = CellLog(out / CELLS)
    if log.path.exists() or not (out / RESULTS).is_file():
        recorded = log.records(cell_of)
    else:
        recorded = {cell_of(record): record for record in read_results(out)}
        record = to_six_digits(record)
    before = recorded.get(cell)
    if before is None:
        print(f"{out} holds no figures for {cell}")
        return True
    keys = (*METRICS, "rows_seen", "collapsed", "reliability", "error")
    differing = [key for key in keys if before[key] != record[key]]
    told = ", ".join(f"{key} {before[key]}" for key in differing)
    if differing and (others := other_than_here(read_environments(out / ENVIRONMENT))):
        told += f"; sums round differently elsewhere, and some of its cells were run with {others}"
    print(
        visible(
            f"{out} holds other figures for {cell}: {told}"
            if differing
            else f"{out} holds the same figures for {cell}"
        )
    )
    return not differing


def sweep(
    name: str,
    data: Path | None,
    shards: str | None,
    methods: Sequence[str] | None,
    tasks: Sequence[str] | None,
    repeats: int,
    out: Path,
    model: Path | None,
    jobs: int | None,
    *,
    retry_failed: bool = False,
    new_weights: bool = False,
) -> None:
    """Run one sweep, or all, on real tables and, if given, on held-out shards.

    Prints which tables are too small. Raises `InputError` if there is no such sweep, if nothing is
    large enough to draw from, or if `tasks` names a table that is too small and there are no
    shards.
    """
    if name != "all" and name not in SWEEPS:
        raise InputError(f"there is no sweep {name!r}; there are {', '.join(SWEEPS)}, and all")
    # First, since tables may have to be downloaded.
    synthetic, digest = ([], None) if shards is None else shard_pools(shards)
    plan = make_plan(data, methods or _rivals(model), tasks, repeats, model, jobs)
    pools = table_pools(plan.collection.tables.values())
    drawn_from = {pool.name for pool in pools}
    small = [table for table in plan.collection.tables if table not in drawn_from]
    # With shards, naming only a small table is the way to sweep over synthetic tasks alone.
    if tasks and small and shards is None:
        raise InputError(
            f"fewer than 1,000 rows of a class in {', '.join(small)}: a sweep draws from tables "
            "with as many of each; name others with --tasks"
        )
    for table in small:
        print(visible(f"table {table} is left out of the sweep: fewer than 1,000 rows of a class"))
    if shards is None:
        print(f"no synthetic tasks; make some with `{COMMAND}` and give --shards shards/bench")
    pools += synthetic
    if not pools:
        raise InputError(
            "no table has 1,000 rows of each class, and there are no shards: nothing to draw from"
        )
    sweeps = list(SWEEPS) if name == "all" else [name]
    chosen = SweepPlan(
        sweeps,
        pools,
        plan.methods,
        repeats,
        model,
        plan.jobs,
        shards_digest=digest,
        retry_failed=retry_failed,
        new_weights=new_weights,
    )
    if next(chosen.cells(), None) is None:
        raise InputError(
            f"none of the {len(pools)} pools has enough rows for a value of {' or '.join(sweeps)}: "
            f"`{COMMAND}` makes synthetic tasks that do"
        )
    computed: list[Cell] = []
    records = run_sweeps(chosen, out, begun=computed.extend)
    failed = sum(record["error"] is not None for record in records)
    page = write_sweep_report(out)
    print(
        f"{out}: {counted(len(records), 'cell')} of {counted(len(pools), 'pool')}, {failed} "
        f"failed; {_news(records, computed)}; report: {page}"
    )


def _news(records: Sequence[Record], computed: Sequence[Cell]) -> str:
    """How many cells were computed now, and how many were there already.

    Cells are identified by the method's name, so only this shows that a changed method was not run
    again.
    """
    return f"{len(computed)} computed now, {len(records) - len(computed)} were there already"


def _rivals(model: Path | None) -> list[str]:
    """Those of `SWEEP_METHODS` that can be run here; prints why others are left out."""
    usable, skipped = usable_methods(None, model)
    for name in SWEEP_METHODS:
        if name in skipped:
            print(f"method {name} is left out: {skipped[name]}")
    return [name for name in usable if name in SWEEP_METHODS]


def make_plan(
    data: Path | None,
    methods: Sequence[str] | None,
    tasks: Sequence[str] | None,
    repeats: int,
    model: Path | None,
    jobs: int | None,
    *,
    retry_failed: bool = False,
    new_weights: bool = False,
) -> Plan:
    """Load the tables and check the methods; prints what is left out and why.

    Raises `InputError` if the weights are missing, or if no method or no task is left.
    """
    if model is not None and not find_weights(model).is_file():
        raise InputError(f"no weights at {model}")
    usable, skipped = usable_methods(methods, model)
    if not usable:
        raise InputError("no method can be run")
    collection = load_collection(data, tasks)
    for name, reason in skipped.items():
        print(f"method {name} is left out: {reason}")
    for name, reason in collection.unavailable.items():
        print(visible(f"task {name} is not available: {reason}"))
    for name, table in collection.tables.items():
        if table.left_out:
            print(visible(f"of table {name}, {left_out_words(table.left_out)}"))
    if not collection.tables:
        raise InputError("no task is available; give a folder of tables with --data")
    return Plan(
        collection,
        usable,
        repeats,
        model=model,
        jobs=jobs or os.cpu_count() or 1,
        retry_failed=retry_failed,
        new_weights=new_weights,
        skipped=skipped,
    )


def parse_cell(text: str) -> Cell:
    """Parse `task:method:repeat` into a cell; raises `InputError` if it is not of this form."""
    parts = text.rsplit(":", 2)  # a table of one's own may have colons in its name
    if len(parts) != 3 or not parts[2].isdecimal():
        raise InputError(f"--only {text!r} is not of the form task:method:repeat")
    if parts[1] not in METHODS:
        raise InputError(f"there is no method {parts[1]!r}; there are {', '.join(METHODS)}")
    return Cell(parts[0], parts[1], int(parts[2]))
