"""Read a table of any supported format, and write scores, with one-sentence errors."""

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
# File name endings of scores that can be written, and of tables that can be read from folders.
WRITTEN = (".csv", *_PARQUET)
READ = (*WRITTEN, *_EXCEL)
# Endings of other formats, which are not written.
_OTHERS = frozenset(
    (".tsv", ".tab", ".gz", ".zip", ".bz2", ".xz", ".zst", ".xls", *_EXCEL, ".ods", ".json")
) | {".jsonl", ".feather", ".arrow"}
# These are tried as CSV all the same; if they are not, the error says why.
_TRIED = frozenset((".tsv", ".tab", ".gz"))


def is_passed_over(path: Path) -> bool:
    """Whether the file's ending is that of a table in a format that is not read from folders."""
    return path.suffix.lower() in _OTHERS.difference(READ)


def shown(name: str) -> str:
    """A file's name as printable text, with bytes that are not UTF-8 shown as \\udc.. ."""
    return name.encode("utf-8", "backslashreplace").decode()


def read_table(
    source: str,
    label_column: str | None = None,
    id_column: str | None = None,
    dialect: Dialect | None = None,
    sheet: str | None = None,
    words: bool = False,
) -> pd.DataFrame:
    """Read the CSV, Parquet or Excel file `source`, or CSV from stdin if it is "-".

    sheet: of an Excel file, by default the only visible one with entries (`read_excel`). dialect:
    its decimal comma applies to text in any file; its separator and encoding apply to CSV only, by
    default commas and UTF-8.

    In CSV, the id column is text exactly as written (001, 1.10, NA). The label column is text, too,
    and cells that are empty, NA or the like are missing; with `words`, only empty cells are.

    Raises `InputError` if the file cannot be read, has no rows, or has two columns of one name.
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
    """Write Parquet if `target` ends in .parquet or .pq, else CSV; to stdout if it is "-"."""
    if target == STREAM:
        sys.stdout.flush()  # then write bytes: UTF-8 as in files, whatever the terminal's encoding
        sys.stdout.buffer.write(table.to_csv(index=False).encode())
        sys.stdout.buffer.flush()
    elif Path(target).suffix.lower() in _PARQUET:
        content = io.BytesIO()
        _with_pyarrow(lambda: table.to_parquet(content, index=False))
        write_atomically(Path(target), content.getvalue())
    else:
        write_atomically(Path(target), table.to_csv(index=False).encode())


def check_target(target: str, source: str, option: str = "--out") -> None:
    """Raise `InputError` if `target` cannot be written or would overwrite `source`."""
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
    if path.is_file() or not path.exists():  # pipes and devices need no temporary file
        try:  # fail now rather than after minutes of scoring
            tempfile.TemporaryFile(dir=path.resolve().parent).close()
        except OSError as error:
            raise InputError(
                f"{option} {path} cannot be written: {error.strerror}; give a file in another "
                "folder"
            ) from None


def _read_parquet(path: Path, named: tuple[str | None, ...]) -> pd.DataFrame:
    """Read the file's columns, and the levels of its index whose names are in `named`."""
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
    except (OSError, ValueError) as error:  # base classes of pyarrow's errors
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
