"""What scripts over folders of real tables share: tables, splits, and a CSV of what was measured.

A folder holds `index.json` (name to {"positive": value of the last column}) and `NAME.csv.gz`;
splits are made as the benchmark's (`pu_bench.split_pu`): each labels a third of at most 600
positives and adds as many negatives as positives are left. They hold other rows than split k of
`puicl bench`, which sorts the rows of a table first.
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
from pu_bench.data.local import INDEX, read_index
from puicl_config import InputError, write_atomically
from puicl_model import find_weights


def table_names(folder: Path, asked: Sequence[str] | None = None) -> list[str]:
    """The names of a folder's tables, or those of them that are `asked` for.

    Raises `InputError` where the folder lacks the index, one of these tables or its file.
    """
    index = index_of(folder)
    for name in asked or index:
        if name not in index:
            raise InputError(f"{folder} has no table {name!r}; it has {', '.join(sorted(index))}")
        if not (folder / f"{name}.csv.gz").is_file():
            raise InputError(f"{folder} has no {name}.csv.gz, which its {INDEX} names")
    return list(asked or sorted(index))


def index_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Facts of each table by its name. Raises `InputError` where the folder says none."""
    index = read_index(folder)
    if index is None:
        raise InputError(f"{folder} is no folder of tables: there is no {INDEX} in it")
    return index


def read_tables(
    folder: Path, names: list[str] | None = None
) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Name, features and boolean positives of each table. Raises `InputError` as above."""
    index = index_of(folder)
    for name in table_names(folder, names):
        table = pd.read_csv(folder / f"{name}.csv.gz", keep_default_na=False, na_values=[""])
        target = table.pop(table.columns[-1])
        yield name, table, (target.astype(str) == str(index[name]["positive"])).to_numpy()


def split_rows(
    table: pd.DataFrame, positive: np.ndarray, split: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows of a split, labelled ones first, their labels s and the classes y of the others."""
    task = split_pu(np.arange(len(table), dtype=float)[:, None], positive, split)
    return table.iloc[task.x[:, 0].astype(int)].reset_index(drop=True), task.s, task.y


def thin(n_labeled: int, y: np.ndarray, most: int) -> tuple[np.ndarray, int, np.ndarray]:
    """Places of at most `most` rows of a split, labelled ones first, in the same proportion.

    y: classes of the unlabelled rows. Returned with the places: how many are of labelled rows, and
    the classes of the others.
    """
    share = min(1.0, most / (n_labeled + len(y)))
    labeled, unlabeled = (max(2, int(share * n)) for n in (n_labeled, len(y)))
    kept = np.concatenate([np.arange(labeled), n_labeled + np.arange(unlabeled)])
    return kept, labeled, y[:unlabeled]


def digest(model: str) -> str:
    """The first digits of the SHA-256 of a network's weights. Raises `InputError` as below."""
    return hashlib.sha256(weights_file(model).read_bytes()).hexdigest()[:16]


def weights_file(model: str) -> Path:
    """The file of a network's weights. Raises `InputError` where there is none."""
    path = find_weights(model)
    if not path.is_file():
        raise InputError(f"there are no weights at {path}")
    return path


def with_range(model: Path, folder: Path, known: dict[str, Any]) -> Path:
    """A copy of the weights in `folder` whose card says that they know tables like `known`."""
    copy = folder / f"{'-'.join(map(str, known.values()))}.safetensors"
    if not copy.exists():
        shutil.copy(model, copy)
        card = json.loads(model.with_suffix(".json").read_text(encoding="utf-8"))
        card["trained_range"] = card.get("trained_range", {}) | known
        copy.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    return copy


def data_digest(folder: Path, name: str) -> str:
    """The first digits of the SHA-256 of a table's file and of which class is positive."""
    positive = str(index_of(folder)[name]["positive"])
    content = (folder / f"{name}.csv.gz").read_bytes() + positive.encode()
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
    `InputError` where `out` cannot be written, is no CSV or has other columns.
    """
    frame = pd.DataFrame(columns=[*key, *figures])
    if out and output_file(out).exists():
        try:  # digests may look like numbers
            frame = pd.read_csv(out, dtype={"weights": str, "data": str})
        except ValueError as error:  # of pandas, all that is wrong with a file's content
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
