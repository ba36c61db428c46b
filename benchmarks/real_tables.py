"""Shared by scripts that measure on folders of real tables: reading, splits, and a CSV of results.

A folder is as for `puicl bench --data`: `index.json` (name to {"positive": value of the last
column}) and `NAME.csv.gz` or `NAME.csv`. Splits follow the benchmark's protocol
(`pu_bench.split_pu`): each labels a third of at most 600 positives and adds as many negatives as
there are hidden positives. Split k holds other rows than split k of `puicl bench`, which sorts the
rows of a table first.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from where_to import output_file

from pu_bench import split_pu
from pu_bench.data.local import INDEX, read_index, table_path
from puicl_config import InputError, write_atomically
from puicl_model import find_weights


def table_names(folder: Path, asked: Sequence[str] | None = None) -> list[str]:
    """The names of a folder's tables, or of those that are `asked` for.

    Raises `InputError` if the folder lacks the index, one of these tables or its file.
    """
    index = index_of(folder)
    for name in asked or index:
        if name not in index:
            raise InputError(f"{folder} has no table {name!r}; it has {', '.join(sorted(index))}")
        table_file(folder, name)
    return list(asked or sorted(index))


def table_file(folder: Path, name: str) -> Path:
    """The file of a table that the folder's index names; raises `InputError` if it is missing."""
    path = table_path(folder, name)
    if path is None:
        raise InputError(f"{folder} has no {name}.csv or {name}.csv.gz, which its {INDEX} names")
    return path


def index_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The folder's index: facts by table name; raises `InputError` if there is none."""
    index = read_index(folder)
    if index is None:
        raise InputError(f"{folder} is no folder of tables: there is no {INDEX} in it")
    return index


def read_tables(
    folder: Path, names: list[str] | None = None
) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Yield name, features and boolean positives of each table; raises as `table_names` does."""
    index = index_of(folder)
    for name in table_names(folder, names):
        table = pd.read_csv(table_file(folder, name), keep_default_na=False, na_values=[""])
        target = table.pop(table.columns[-1])
        yield name, table, (target.astype(str) == str(index[name]["positive"])).to_numpy()


def split_rows(
    table: pd.DataFrame, positive: np.ndarray, split: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows of a split (labelled first), their labels s, and classes y of the unlabelled ones."""
    task = split_pu(np.arange(len(table), dtype=float)[:, None], positive, split)
    return table.iloc[task.x[:, 0].astype(int)].reset_index(drop=True), task.s, task.y


def thin(n_labeled: int, y: np.ndarray, most: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Thin a split to at most `most` rows, keeping the proportion of labelled rows.

    y: classes of the unlabelled rows. Returns the places of the rows kept (labelled first), the
    number of labelled ones, and the classes of the others.
    """
    share = min(1.0, most / (n_labeled + len(y)))
    labeled, unlabeled = (max(2, int(share * n)) for n in (n_labeled, len(y)))
    kept = np.concatenate([np.arange(labeled), n_labeled + np.arange(unlabeled)])
    return kept, labeled, y[:unlabeled]


def digest(model: str) -> str:
    """The first digits of the SHA-256 of a network's weights; raises as `weights_file` does."""
    return hashlib.sha256(weights_file(model).read_bytes()).hexdigest()[:16]


def weights_file(model: str) -> Path:
    """The file of a network's weights; raises `InputError` if there is none."""
    path = find_weights(model)
    if not path.is_file():
        raise InputError(f"there are no weights at {path}")
    return path


def with_range(model: Path, folder: Path, known: dict[str, Any]) -> Path:
    """A copy of the weights in `folder` whose card has `known` as trained range."""
    copy = folder / f"{'-'.join(map(str, known.values()))}.safetensors"
    if not copy.exists():
        shutil.copy(model, copy)
        card = json.loads(model.with_suffix(".json").read_text(encoding="utf-8"))
        card["trained_range"] = card.get("trained_range", {}) | known
        copy.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    return copy


def data_digest(folder: Path, name: str) -> str:
    """The first digits of the SHA-256 of a table's file and its positive class."""
    positive = str(index_of(folder)[name]["positive"])
    content = table_file(folder, name).read_bytes() + positive.encode()
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
    """Measure cells; skip those in the CSV file `out`, if given, and append the others to it.

    Columns are `key` and `figures`. cells: each a tuple with values of the first columns of `key`,
    which identify it. measure: takes these values and returns the cell's rows (one or more) without
    them. Stopping the script loses a cell or two at most. Returns the rows of all cells. Raises
    `InputError` if `out` cannot be written, is no CSV file or has other columns.
    """
    frame = pd.DataFrame(columns=[*key, *figures])
    if out and output_file(out).exists():
        try:  # digests may look like numbers
            frame = pd.read_csv(out, dtype={"weights": str, "data": str})
        except ValueError as error:  # pandas' error for any fault in a file's content
            raise InputError(f"{out} cannot be read: {error}; give another --out") from None
        if list(frame.columns) != [*key, *figures]:
            raise InputError(f"{out} has columns {', '.join(frame)}: give another --out")
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
