"""The tables of a benchmark: the 20 of the paper, or those of a folder with an index."""

import contextlib
import gzip
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pu_bench.data.canonical import CanonicalTable, Table
from pu_bench.data.local import INDEX, indexed_table, read_index, read_table, table_path
from pu_bench.data.sources import SourceError
from pu_bench.data.tasks import TASKS, TaskSpec
from puicl_config import InputError, write_atomically
from shard_io import cache_folder

PAPER = "paper20"


@dataclass(frozen=True)
class Collection:
    """Tables by name, in the collection's order, and the reasons why others are unavailable.

    `name` is "paper20" or the folder's name; only the former is comparable with the paper.
    """

    name: str
    tables: dict[str, Table]
    unavailable: dict[str, str]


def load_collection(data: Path | None = None, names: Sequence[str] | None = None) -> Collection:
    """Load the tables `names` (all if None).

    A folder `data` with an `index.json` is a collection of its own. Otherwise the collection is the
    paper's 20 tables. Each is looked for in `data`, in the cache and at its sources, in this order,
    and must have the pinned checksum wherever it comes from. Raises `InputError` for an unknown
    name, for a `data` that is no folder or holds neither an index nor any of the 20 tables, and for
    damaged tables in a folder with an index.
    """
    if data is not None and not data.is_dir():
        raise InputError(f"--data {data} is no folder")
    index = read_index(data) if data else None
    known = list(index if index is not None else TASKS)
    for name in names or ():
        if name not in known:
            raise InputError(f"there is no task {name!r}; there are {', '.join(known)}")
    if data is not None and index is None and not any(table_path(data, name) for name in TASKS):
        raise InputError(
            f"{data} holds none of the {len(TASKS)} tables ({next(iter(TASKS))}.csv.gz, ...); for "
            f'tables of your own, write {data / INDEX}, such as {{"NAME": {{"positive": "yes"}}}} '
            "for a NAME.csv whose last column is target"
        )
    wanted = [name for name in known if names is None or name in names]
    if data is not None and index is not None:
        return Collection(
            data.resolve().name,
            {name: indexed_table(data, name, index[name]) for name in wanted},
            {},
        )
    tables, unavailable = {}, {}
    for name in wanted:
        try:
            tables[name] = _load(TASKS[name], data)
        except SourceError as error:
            unavailable[name] = str(error)
    return Collection(PAPER, tables, unavailable)


def _load(spec: TaskSpec, data: Path | None) -> Table:
    local = table_path(data, spec.name) if data else None
    if local:
        try:
            columns, rows = read_table(local)
        except InputError as error:
            raise SourceError(str(error)) from None
        if tuple(columns) != spec.columns:
            raise SourceError(f"{local} has other columns than the pinned table")
        return spec.table(_verified(spec, rows, str(local)))
    cached = cache_folder() / "bench" / f"{spec.name}.csv.gz"
    if cached.is_file():
        with contextlib.suppress(InputError, SourceError):  # damaged: fetched again below
            return spec.table(_verified(spec, read_table(cached)[1], str(cached)))
    problems = []
    for source in spec.sources:
        if spec.needs_network:
            print(f"fetching {spec.name} from {source}", file=sys.stderr, flush=True)
        try:
            table = _verified(spec, source.rows(spec.columns), str(source))
        except SourceError as error:
            problems.append(str(error))
            continue
        if spec.needs_network:
            cached.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(cached, gzip.compress(table.text().encode(), mtime=0))
        return spec.table(table)
    raise SourceError("; ".join(problems))


def _verified(spec: TaskSpec, rows: Sequence[Sequence[object]], where: str) -> CanonicalTable:
    """The canonical table of `rows`; raises `SourceError` unless it is the pinned one."""
    try:
        table = spec.canonical(rows)
    except ValueError as error:
        raise SourceError(f"{where}: {error}") from None
    if table.digest() != spec.digest:
        raise SourceError(
            f"{where} is not the pinned table: its canonical SHA-256 is {table.digest()[:16]}..., "
            f"not {spec.digest[:16]}... ({len(table.rows)} rows, {spec.n_rows} expected)"
        )
    return table
