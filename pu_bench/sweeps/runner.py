"""Run sweeps: every value x pool x method x repeat, resumable like the benchmark itself."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pu_bench.data.canonical import task_digest
from pu_bench.protocol import PUTask
from pu_bench.run.cells import Cell, cell_of, refuse_other_rows, seed_of
from pu_bench.run.environment import describe_environment
from pu_bench.run.files import (
    SWEEP_CELLS,
    SWEEP_RESULTS,
    SWEEP_RUN,
    csv_of,
    read_facts,
    read_rows,
    refuse_unclaimed,
    value_of,
)
from pu_bench.run.networks import give_way, network_facts
from pu_bench.run.runner import PROTOCOL, make_method, run_and_keep
from pu_bench.run.store import CellLog, Record, is_done, only_run_in
from pu_bench.sweeps.pools import Composition, Pool, draw
from pu_bench.sweeps.sweeps import SWEEPS
from puicl_config import InputError, write_atomically

COLUMNS = (
    *("sweep", "kind", "value", "pool", "method", "repeat"),
    *("auc", "accuracy", "pi_error", "seconds", "error", "rows_seen"),
)


@dataclass(frozen=True)
class SweepPlan:
    """Which sweeps to run, on which pools, with which methods.

    `shards_digest` is the digest of the shards' plan. `retry_failed`: failed cells are run again.
    `new_weights`: results of methods whose weights have changed are replaced.
    """

    sweeps: Sequence[str]
    pools: Sequence[Pool]
    methods: Sequence[str]
    repeats: int
    model: Path | None
    jobs: int
    shards_digest: str | None
    retry_failed: bool = False
    new_weights: bool = False

    def cells(self) -> Iterator[tuple[str, float, Pool, Composition, Cell]]:
        """All cells, each with its sweep, value, pool and composition.

        A real pool is drawn from `repeats` times; a synthetic one once, since there are many.
        """
        for name in self.sweeps:
            for value in SWEEPS[name].values:
                for pool, wanted in SWEEPS[name].pools(value, self.pools):
                    for repeat in range(self.repeats if pool.kind == "real" else 1):
                        for method in self.methods:
                            cell = Cell(task_name(name, value, pool.name), method, repeat)
                            yield name, value, pool, wanted, cell


def task_name(sweep: str, value: float, pool: str) -> str:
    """Name of the task drawn from a pool at one value of a sweep."""
    return f"{sweep}={value:g}@{pool}"


def run_sweeps(
    plan: SweepPlan, out: Path, begun: Callable[[Sequence[Cell]], object] | None = None
) -> list[Record]:
    """Run the cells that `out` lacks and write sweeps.csv; returns the plan's records.

    `begun` is called before the first cell with the cells that will be run. Raises `InputError` if
    `out` holds sweeps with other shards, tables, rows, weights or another protocol, if it holds
    sweeps without the sweeps.json that identifies them, or if another run is working there.
    """
    log = CellLog(out / SWEEP_CELLS)
    wanted = list(plan.cells())
    with only_run_in(out):
        _claim(out, plan, log)
        done = log.records(cell_of)
        todo = [e for e in wanted if not is_done(done.get(e[-1]), plan.retry_failed)]
        draws = {cell: (pool, composition) for *_, pool, composition, cell in todo}
        refuse_other_rows(
            out, draws, done.values(), lambda cell: split_of(*draws[cell], cell.repeat)
        )
        if begun:
            begun(list(draws))
        try:
            run_and_keep("sweep", todo, _asked, log, plan, len(wanted))
        finally:
            done = log.records(cell_of)
            write_atomically(out / SWEEP_RESULTS, _csv(list(done.values())))
    return [done[entry[-1]] for entry in wanted]


def split_of(pool: Pool, composition: Composition, repeat: int) -> PUTask:
    """Draw a task from a pool.

    The seed depends on the pool and the repeat alone, so that all methods see the same rows and all
    values of a sweep start from the same random numbers.
    """
    return draw(pool, composition, np.random.default_rng(seed_of("sweep", pool.name, repeat)))


def _asked(entry: tuple[str, float, Pool, Composition, Cell]) -> tuple[Cell, PUTask, dict]:
    """A cell, its rows, and the facts about the sweep for its record."""
    name, value, pool, composition, cell = entry
    facts = {"sweep": name, "value": value, "pool": pool.name, "kind": pool.kind}
    return cell, split_of(pool, composition, cell.repeat), facts


def _claim(out: Path, plan: SweepPlan, log: CellLog) -> None:
    path = out / SWEEP_RUN
    refuse_unclaimed(out, SWEEP_RUN, (SWEEP_CELLS, SWEEP_RESULTS))
    now: dict[str, Any] = {
        "protocol": PROTOCOL,
        "shards": plan.shards_digest,
        "pools": {
            pool.name: task_digest(pool.x, pool.positive)
            for pool in plan.pools
            if pool.kind == "real"
        },
        **network_facts(make_method(name, plan.model) for name in plan.methods),
    }
    before = read_facts(path) if path.is_file() else {}
    if before and before.get("protocol", 1) != PROTOCOL:
        raise InputError(f"{out} holds sweeps that were judged in another way; give another --out")
    here = describe_environment(plan.jobs)
    earlier = [each for each in before.get("environments", []) if each != here]
    now["environments"] = [*earlier, here]
    if before.get("shards") and now["shards"] and before["shards"] != now["shards"]:
        raise InputError(f"{out} holds sweeps with other shards; give another --out")
    now["shards"] = now["shards"] or before.get("shards")
    known = before.get("pools", {})  # older versions did not record them
    for name, digest in now["pools"].items():
        if known.get(name, digest) != digest:
            raise InputError(f"{out} holds sweeps on another {name} table; give another --out")
    now["pools"] = {**known, **now["pools"]}
    with log.begun_from(out / SWEEP_RESULTS, _published):
        now = give_way(out, log, before, now, plan.new_weights)
        if before:
            # No file may hold figures of the old weights once sweeps.json names the new ones.
            write_atomically(out / SWEEP_RESULTS, _csv(list(log.records(cell_of).values())))
    write_atomically(path, (json.dumps(now, indent=1) + "\n").encode())


def _published(path: Path) -> list[Record]:
    """The records that `_csv` wrote, with floats to 6 digits.

    Raises `InputError` if the file is damaged.
    """
    found = []
    try:
        for row in read_rows(path):
            record: Record = {column: value_of(column, text) for column, text in row.items()}
            task = task_name(record["sweep"], record["value"], record["pool"])
            found.append({"task": task, **record})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is damaged: {error}") from None
    return found


def _csv(records: Sequence[Record]) -> bytes:
    # Include the repeat: workers finish in any order.
    order = ("sweep", "kind", "value", "pool", "method", "repeat")
    ordered = sorted(records, key=lambda r: [r[key] for key in order])
    # Files of older versions lack rows_seen.
    return csv_of(COLUMNS, [{"rows_seen": None, **record} for record in ordered])
