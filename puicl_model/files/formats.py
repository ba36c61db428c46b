"""Reading a table of any supported format, and writing scores, with one-sentence errors."""

import importlib
import io
import sys
import tempfile
from pathlib import Path

import pandas as pd

from puicl_config import InputError, write_atomically
from puicl_model.files.csv_files import STREAM, Dialect, read_csv, rounded
from puicl_model.files.decimals import POINTS, read_commas
from puicl_model.files.excel_files import read_excel

_PARQUET = (".parquet", ".pq")
_EXCEL = (".xlsx", ".xlsm")
# What files of scores end in, and of tables.
WRITTEN = (".csv", *_PARQUET)
READ = (*WRITTEN, *_EXCEL)
# What a file's name promises and is not written here.
_OTHERS = frozenset(
    (".tsv", ".tab", ".gz", ".zip", ".bz2", ".xz", ".zst", ".xls", *_EXCEL, ".ods", ".json")
) | {".jsonl", ".feather", ".arrow"}
# These may hold CSV all the same, or say themselves why not.
_TRIED = frozenset((".tsv", ".tab", ".gz"))


def is_passed_over(path: Path) -> bool:
    """Whether a folder's file has the name of a table of a kind that is not read in folders."""
    return path.suffix.lower() in _OTHERS.difference(READ)


def shown(name: str) -> str:
    """A file's name as text that can be written: bytes that are no UTF-8 as \\udc.. ."""
    return name.encode("utf-8", "backslashreplace").decode()


def read_table(
    source: str,
    label_column: str | None = None,
    id_column: str | None = None,
    dialect: Dialect | None = None,
    sheet: str | None = None,
    words: bool = False,
) -> pd.DataFrame:
    """The CSV, Parquet or Excel file `source`, or CSV from stdin where it is "-".

    sheet: of an Excel file, by default the only one with entries (`read_excel`).

    Text with decimal commas is read as numbers in any file, where `dialect` has them. Its separator
    and encoding are of CSV alone, by default commas and UTF-8. In CSV the label column is text,
    missing where nothing is written or NA and the like; the id column is text as it is written
    (001, 1.10, NA), and with `words` so is the label column, missing where nothing is written.

    Raises `InputError` where it cannot be read, has no rows, or a column's name twice.
    """
    dialect = dialect or Dialect()
    ending = "" if source == STREAM else Path(source).suffix.lower()
    if sheet is not None and ending not in _EXCEL:
        name = "stdin" if source == STREAM else source
        raise InputError(f"--sheet {sheet}: {name} is no Excel file (.xlsx)")
    if ending in _OTHERS - _TRIED - {*_EXCEL}:
        raise InputError(
            f"{source}: files ending in {ending} are not read here; give CSV, Parquet or .xlsx"
        )
    if ending in _PARQUET:
        table = _read_parquet(Path(source), (label_column, id_column))
    elif ending in _EXCEL:
        table = read_excel(Path(source), sheet)
    else:
        table = read_csv(source, label_column, id_column, dialect, words)
    if table.empty:
        raise InputError(f"{'stdin' if source == STREAM else source} has no rows")
    if dialect.decimal == "," and ending in (*_PARQUET, *_EXCEL):
        table.attrs[POINTS] = read_commas(table, {label_column, id_column})
    return table


def write_table(table: pd.DataFrame, target: str) -> None:
    """Write CSV, Parquet where the name ends so, or CSV to stdout where `target` is "-"."""
    if target == STREAM:
        sys.stdout.flush()  # UTF-8, as files are, whatever the terminal's encoding
        sys.stdout.buffer.write(table.to_csv(index=False).encode())
        sys.stdout.buffer.flush()
    elif Path(target).suffix.lower() in _PARQUET:
        content = io.BytesIO()
        _with_pyarrow(lambda: table.to_parquet(content, index=False))
        write_atomically(Path(target), content.getvalue())
    else:
        write_atomically(Path(target), table.to_csv(index=False).encode())


def check_target(target: str, source: str, option: str = "--out") -> None:
    """Raise `InputError` where `target` cannot be written or would overwrite `source`."""
    if target == STREAM:
        return
    path = Path(target)
    if not path.parent.is_dir():
        raise InputError(f"the folder of {path} does not exist")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give a file for {option}")
    if path.suffix.lower() in _OTHERS:
        raise InputError(f"{option} {path}: files ending in {path.suffix} are not written here")
    if path.suffix.lower() in _PARQUET:
        _with_pyarrow(lambda: importlib.import_module("pyarrow"))
    if source != STREAM and path.exists() and Path(source).exists() and path.samefile(source):
        raise InputError(f"{option} {path} would overwrite the data; give another file")
    if path.is_file() or not path.exists():  # a pipe or a device is written to as it is
        try:  # before minutes of scoring
            tempfile.TemporaryFile(dir=path.resolve().parent).close()
        except OSError as error:
            raise InputError(
                f"{option} {path} cannot be written: {error.strerror}; give a file in another "
                "folder"
            ) from None


def _read_parquet(path: Path, named: tuple[str | None, ...]) -> pd.DataFrame:
    """The file's columns, and those of its index that are `named`."""
    if not path.is_file():
        raise InputError(f"no file {path}")
    try:
        table = _with_pyarrow(lambda: pd.read_parquet(path))
        if names := rounded(table):
            exact = pd.read_parquet(path, columns=names, dtype_backend="numpy_nullable")
            for name in exact.columns[[dtype.kind in "iu" for dtype in exact.dtypes]]:
                table[name] = exact[name].set_axis(table.index)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # pyarrow's errors are of these kinds
        reason = " ".join(str(error).split())
        raise InputError(f"{path} cannot be read as Parquet: {reason}") from None
    index = [name for name in table.index.names if name in named and name not in table.columns]
    index = [name for name in index if name is not None]
    return table.reset_index(index).reset_index(drop=True)


def _with_pyarrow(action):
    try:
        return action()
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install pyarrow, or give a CSV file") from None
