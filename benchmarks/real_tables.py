"""What scripts over folders of real tables share: tables, splits, and a CSV of what was measured.

A folder holds `index.json` (name to {"positive": value of the last column}) and `NAME.csv.gz`;
splits are made as the benchmark's (`pu_bench.split_pu`): each labels a third of at most 600
positives and adds as many negatives as positives are left. They hold other rows than split k of
`puicl bench`, which sorts the rows of a table first.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from pu_bench import split_pu
from puicl_config import write_atomically
from puicl_model import find_weights


def table_names(folder: Path) -> list[str]:
    """The names of a folder's tables."""
    return sorted(json.loads((folder / "index.json").read_text(encoding="utf-8")))


def read_tables(
    folder: Path, names: list[str] | None = None
) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, features and boolean positives of each table."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    for name in names or sorted(index):
        table = pd.read_csv(folder / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
        target = table.pop(table.columns[-1])
        yield name, table, (target.astype(str) == str(index[name]["positive"])).to_numpy()


def split_rows(
    table: pd.DataFrame, positive: np.ndarray, split: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows of a split, labelled ones first, their labels s and the classes y of the others."""
    task = split_pu(np.arange(len(table), dtype=float)[:, None], positive, split)
    return table.iloc[task.x[:, 0].astype(int)].reset_index(drop=True), task.s, task.y


def digest(model: str) -> str:
    """The first digits of the SHA-256 of a network's weights."""
    return hashlib.sha256(find_weights(model).read_bytes()).hexdigest()[:16]


def data_digest(folder: Path, name: str) -> str:
    """The first digits of the SHA-256 of a table's file and of which class is positive."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    content = (folder / f"{name}.csv.gz").read_bytes() + str(index[name]["positive"]).encode()
    return hashlib.sha256(content).hexdigest()[:16]


def read_split(folder: Path, name: str, split: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """`split_rows` of one table of a folder."""
    _, table, positive = next(read_tables(folder, [name]))
    return split_rows(table, positive, split)


def measured(
    out: Path | None,
    key: list[str],
    figures: list[str],
    cells: Iterable[tuple],
    measure: Callable[..., list[tuple]],
    jobs: int = 1,
) -> pd.DataFrame:
    """One or more rows, `key` and `figures`, of each cell; those that `out` holds are not redone.

    cells: values of as many of `key`'s first columns as name a cell; measure: takes them and
    returns the cell's rows, each without these values. Whoever stops it loses a cell or two. Raises
    `SystemExit` where `out` has other columns.
    """
    frame = pd.DataFrame(columns=[*key, *figures])
    if out and out.exists():
        # Digests may look like numbers.
        frame = pd.read_csv(out, dtype={"weights": str, "data": str})
        if list(frame.columns) != [*key, *figures]:
            raise SystemExit(f"{out} has columns {', '.join(frame)}: give another --out")
    cells = list(cells)
    n = len(cells[0]) if cells else 0
    done = set(frame[key[:n]].itertuples(index=False, name=None))
    asked = [cell for cell in cells if cell not in done]
    found = Parallel(n_jobs=jobs, return_as="generator")(delayed(measure)(*cell) for cell in asked)
    for cell, rows in zip(asked, found, strict=True):
        new = pd.DataFrame([[*cell, *row] for row in rows], columns=frame.columns)
        frame = pd.concat([frame, new]) if len(frame) else new
        if out:
            write_atomically(out, frame.to_csv(index=False).encode())
    if not cells:
        return frame
    return frame[pd.MultiIndex.from_frame(frame[key[:n]]).isin(cells)]
