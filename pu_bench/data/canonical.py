"""The canonical form of a table, its checksum, and its encoding as numbers.

In canonical form cells are text, numbers have their shortest spelling, missing cells are empty,
columns have our names with `target` last, and rows are sorted. So neither a source's spelling
(`1.0` or `1`) nor its order of rows can change a split.
"""

import csv
import hashlib
import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pu_bench.data.left_out import MAX_LEVELS, listed, odd_cell
from puicl_model import NOTHING


@dataclass(frozen=True)
class Table:
    """A table encoded for the protocol. x: [n, d] numbers; positive: boolean [n].

    `columns` [d] names the features that were kept. `left_out` maps each dropped feature to an odd
    cell, if its cells are mostly numbers, or to None. `digest` is the SHA-256 of the canonical
    table it was made from.
    """

    name: str
    title: str
    x: np.ndarray
    positive: np.ndarray
    columns: tuple[str, ...]
    digest: str
    left_out: dict[str, str | None] = field(default_factory=dict)

    @property
    def task_digest(self) -> str:
        """See the function `task_digest`: unlike `digest`, it depends on classes and coding."""
        return task_digest(self.x, self.positive)


def task_digest(x: np.ndarray, positive: np.ndarray) -> str:
    """Hex SHA-256 of features [n, d] and boolean positives [n]."""
    digest = hashlib.sha256(str(x.shape).encode())
    for array in (x.astype("<f8"), positive.astype(bool)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class CanonicalTable:
    """Column names, `target` last, and sorted rows of text cells."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def text(self) -> str:
        """The table as CSV with a header."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()

    def digest(self) -> str:
        """Hex SHA-256 of the CSV text."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def column(self, name: str) -> list[str]:
        """One column's cells, [n]."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


def canonical_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    target_codes: Mapping[str, str] | None = None,
) -> CanonicalTable:
    """Bring rows of cells (text or numbers, the target last) into canonical form.

    `target_codes` translates a source's own class names; it is used if it holds all of them. In the
    target, a word for nothing (None, NA) is a class like any other, and only an empty cell is
    missing. Raises `ValueError` if there are no rows, a row has another length than `columns`, or
    two columns have the same name.
    """
    if not rows:
        raise ValueError("there are no rows")
    twice = next((name for name in columns if list(columns).count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two columns are named {twice!r}")
    for number, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(f"row {number} has {len(row)} cells, not {len(columns)}")
    *features, target = zip(*rows, strict=True)
    cells = [_cells(column) for column in features] + [_cells(target, nothing=frozenset())]
    if target_codes and set(cells[-1]) <= set(target_codes):
        cells[-1] = [target_codes[cell] for cell in cells[-1]]
    return CanonicalTable(tuple(columns), tuple(sorted(zip(*cells, strict=True))))


def encode(
    table: CanonicalTable,
    name: str,
    title: str,
    positive_class: Callable[[Sequence[str]], np.ndarray],
    categorical: Collection[str] = (),
) -> Table:
    """Encode a canonical table as numbers and classes, as the protocol prescribes.

    Categorical columns (text, or named in `categorical`) with more than 10 levels are dropped. The
    others are coded 0, 1, ... in sorted order, with a missing cell as a level of its own that comes
    first. Missing numbers are replaced by the column's median, or by 0 if all are missing.
    `positive_class` maps the target's texts to a boolean [n] for the positive class. Raises
    `ValueError` if no column is left.
    """
    kept, values = [], []
    left_out: dict[str, str | None] = {}
    for column in table.columns[:-1]:
        cells = table.column(column)
        numbers = None if column in categorical else _numbers(cells)
        coded = _filled(numbers) if numbers is not None else _coded(cells)
        if coded is not None:
            kept.append(column)
            values.append(coded)
        else:
            left_out[column] = None if column in categorical else odd_cell(cells)
    if not kept:
        found = f": {listed(left_out)}" if left_out else ""
        raise ValueError(f"{name} has no feature column with at most {MAX_LEVELS} levels{found}")
    return Table(
        name=name,
        title=title,
        x=np.column_stack(values),
        positive=positive_class(table.column(table.columns[-1])),
        columns=tuple(kept),
        digest=table.digest(),
        left_out=left_out,
    )


def read_csv_rows(text: str, delimiter: str = ",") -> list[list[str]]:
    """Rows of a CSV text, with cells stripped and empty lines left out."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    return [[cell.strip() for cell in row] for row in reader if any(cell.strip() for cell in row)]


def _cells(column: Sequence[object], nothing: Collection[str] = NOTHING) -> list[str]:
    """A column's text cells; if all are numbers, in their shortest spelling.

    nothing: texts that stand for a missing cell.
    """
    texts = ["" if (text := str(cell).strip()) in nothing else text for cell in column]
    numbers = _numbers(texts)
    if numbers is None:
        return texts
    return ["" if np.isnan(number) else _shortest(number) for number in numbers]


def _numbers(cells: Sequence[str]) -> np.ndarray | None:
    """Numbers [n] with NaN for empty cells, or None if some cell is not a finite number."""
    try:
        numbers = np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return None
    written = np.array([bool(cell) for cell in cells])
    return numbers if np.isfinite(numbers[written]).all() else None


def _shortest(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))


def _filled(numbers: np.ndarray) -> np.ndarray:
    missing = np.isnan(numbers)
    if missing.all():
        return np.zeros(len(numbers))
    return np.where(missing, np.median(numbers[~missing]), numbers)


def _coded(cells: Sequence[str]) -> np.ndarray | None:
    """Levels as 0, 1, ... in sorted order (numbers by value), or None if there are too many."""
    levels = set(cells)
    if len(levels) > MAX_LEVELS:
        return None
    order = {level: code for code, level in enumerate(sorted(levels, key=_level_key))}
    return np.array([float(order[cell]) for cell in cells])


def _level_key(level: str) -> tuple[int, float, str]:
    if not level:
        return 0, 0.0, ""
    try:
        return 1, float(level), level
    except ValueError:
        return 2, 0.0, level
