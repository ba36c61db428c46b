"""Cells of the benchmark: one method on one split of one task, a pure function of its name."""

import hashlib
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pu_bench.methods import Method
from pu_bench.protocol import PUTask
from pu_bench.run.metrics import METRICS, judge
from pu_bench.run.store import Record
from puicl_config import InputError


@dataclass(frozen=True, order=True)
class Cell:
    """A cell's identity: task, method and number of the repeat."""

    task: str
    method: str
    repeat: int

    @property
    def split_seed(self) -> int:
        """Seed of the split: the same for every method, so that all see the same rows."""
        return seed_of("split", self.task, self.repeat)

    @property
    def method_seed(self) -> int:
        """Seed of the method; below 2**31, as some libraries require."""
        return seed_of("method", self.task, self.method, self.repeat) % 2**31

    def __str__(self) -> str:
        return f"{self.task}:{self.method}:{self.repeat}"


def cell_of(record: Record) -> Cell:
    """The cell that a record is of."""
    return Cell(record["task"], record["method"], record["repeat"])


def run_cell(
    cell: Cell,
    method: Method,
    split: PUTask,
    failed: Callable[[Exception], object] | None = None,
) -> Record:
    """Run and judge one method on one split, in one thread; returns a record of JSON values.

    The method gets P, U and a seed, and beyond that only what it declares in `sees`. An exception
    becomes the record's `error`, and `seconds` is then the time until the failure; `failed` is
    called with it. `rows_seen` is the digest of P and U as the method got them.
    """
    seen: dict[str, Any] = {}
    if "class_prior" in method.sees:
        seen["class_prior"] = float(split.y.mean())
    if "labels" in method.sees:
        seen["labels"] = split.y.copy()
    P, U = split.P.copy(), split.U.copy()
    record: Record = {
        **asdict(cell),
        **dict.fromkeys(METRICS),
        "n_labeled": len(P),
        "n_unlabeled": len(U),
        "n_features": P.shape[1],
        "pi": float(split.y.mean()),
        "rows_seen": rows_digest(P, U),
        "collapsed": None,
        "reliability": None,
        "error": None,
    }
    start = time.perf_counter()
    try:
        with threadpool_limits(1), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # thousands of the same; failures are recorded below
            prediction = method.fit_predict(P, U, cell.method_seed, **seen)
        record["seconds"] = time.perf_counter() - start
        judged = judge(prediction, split.y, method.is_probability)
    except Exception as error:  # a method may fail in any way; the run goes on without it
        record["seconds"] = time.perf_counter() - start
        if failed:
            failed(error)
        record["error"] = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        return record
    record["collapsed"], record["reliability"] = judged.collapsed, judged.reliability
    return {**record, **judged.metrics}


def rows_digest(P: np.ndarray, U: np.ndarray) -> str:
    """Hex SHA-256 of shapes and values of P [n_p, d] and U [n_u, d]."""
    digest = hashlib.sha256(repr((P.shape, U.shape)).encode())
    for rows in (P, U):
        digest.update(np.ascontiguousarray(rows, dtype="<f8").data)
    return digest.hexdigest()


def refuse_other_rows(
    out: Path, todo: Iterable[Cell], done: Iterable[Record], split_of: Callable[[Cell], PUTask]
) -> None:
    """Raise `InputError` if cells of `todo` would see other rows than finished ones in `done`.

    This can happen with another version of NumPy, for example, and methods would then be compared
    on different rows. `split_of` draws a cell's rows; cells of the same task and repeat see the
    same ones.
    """
    # Older versions of the sweeps did not record `rows_seen`.
    known_rows = [record for record in done if record.get("rows_seen")]
    seen = {(record["task"], record["repeat"]): record["rows_seen"] for record in known_rows}
    for cell in {(cell.task, cell.repeat): cell for cell in todo}.values():
        known = seen.get((cell.task, cell.repeat))
        if known:
            split = split_of(cell)
            if rows_digest(split.P, split.U) != known:
                raise InputError(
                    f"{out} holds results on other rows of {cell.task}, repeat {cell.repeat}, than "
                    "are drawn here (by another version of numpy or this software); give another "
                    "--out"
                )


def seed_of(*names: object) -> int:
    """A 63-bit seed derived from names, the same on every machine."""
    text = "\0".join(map(str, names)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1
