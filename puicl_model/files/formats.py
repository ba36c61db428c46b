"""Reading a table of any supported format, and writing scores, with one-sentence errors."""

import codecs
import csv
import importlib
import io
import re
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from puicl_config import InputError, write_atomically
from puicl_model.files.decimals import POINTS, read_commas

STREAM = "-"
_PARQUET = (".parquet", ".pq")
# What tables' files end in, in a folder of them.
SUFFIXES = (".csv", *_PARQUET)
# What a file's name promises and is not written here.
_OTHERS = frozenset(
    (".tsv", ".tab", ".gz", ".zip", ".bz2", ".xz", ".zst", ".xls", ".xlsx", ".ods", ".json")
) | {".jsonl", ".feather", ".arrow"}
# These may hold CSV all the same, or say themselves why not.
_TRIED = frozenset((".tsv", ".tab", ".gz"))
_WHOLE = r"\s*[+-]?\d+\s*"
_BY_NAME = {"tab": "\t", "\\t": "\t"}


def is_passed_over(path: Path) -> bool:
    """Whether a folder's file has the name of a table of a kind that is not read in folders."""
    return path.suffix.lower() in _OTHERS


def shown(name: str) -> str:
    """A file's name as text that can be written: bytes that are no UTF-8 as \\udc.. ."""
    return name.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class Dialect:
    """How CSV is written: what separates cells, the decimal mark, the encoding.

    Raises `InputError` for what cannot be.
    """

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self):
        object.__setattr__(self, "separator", _BY_NAME.get(self.separator, self.separator))
        if len(self.separator) != 1 or self.separator in '"\r\n' or self.separator.isalnum():
            raise InputError(
                f"--separator takes one character, such as ; or | or the word tab, not "
                f"{self.separator!r}"
            )
        if self.decimal not in {".", ","}:
            raise InputError(f"--decimal takes a point or a comma, not {self.decimal!r}")
        if self.decimal == self.separator:
            raise InputError(f"--decimal and --separator are both {self.decimal!r}")
        try:
            "a".encode(self.encoding)  # a codec of that name may be of another kind
        except (LookupError, UnicodeError):
            raise InputError(
                f"--encoding {self.encoding}: there is none of that name; latin-1, cp1252 and "
                "utf-16 are some"
            ) from None

    @property
    def decoder(self) -> str:
        """The encoding's name for Python, a byte order mark passed over."""
        is_utf_8 = codecs.lookup(self.encoding).name == "utf-8"
        return "utf-8-sig" if is_utf_8 else self.encoding


def read_table(
    source: str,
    label_column: str | None = None,
    id_column: str | None = None,
    dialect: Dialect | None = None,
) -> pd.DataFrame:
    """The CSV or Parquet file `source`, or CSV from stdin where it is "-".

    In CSV, written as `dialect` says (by default with commas, decimal points and UTF-8), the label
    column is text, missing where nothing is written or NA and the like; the id column is text as
    it is written (001, 1.10, NA).

    Raises `InputError` where it cannot be read, has no rows, or a column's name twice.
    """
    ending = "" if source == STREAM else Path(source).suffix.lower()
    if ending in _OTHERS - _TRIED:
        raise InputError(f"{source}: files ending in {ending} are not read here; give CSV")
    if ending in _PARQUET:
        table = _read_parquet(Path(source), (label_column, id_column))
    else:
        table = _read_csv(source, label_column, id_column, dialect or Dialect())
    if table.empty:
        raise InputError(f"{'stdin' if source == STREAM else source} has no rows")
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


def _read_csv(
    source: str, label_column: str | None, id_column: str | None, dialect: Dialect
) -> pd.DataFrame:
    name = "stdin" if source == STREAM else source
    try:
        raw = sys.stdin.buffer.read() if source == STREAM else Path(source).read_bytes()
        packed = raw[:2] == b"\x1f\x8b"
        utf_16 = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        # Held once, as bytes: Python's own streams of text take four a character.
        text = _as_utf8(raw, dialect.decoder)
        del raw
        if b"\0" in text:
            hint = "where it is UTF-16, give --encoding utf-16, else mend it"
            raise InputError(f"{name} cannot be read as CSV: it holds NUL characters; {hint}")
        lines = csv.reader(_lines(text), delimiter=dialect.separator)
        names = next((line for line in lines if any(map(str.strip, line))), [])
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would shift or cut their cells.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # As pandas calls them: one without a name, as a saved index, is "Unnamed: 0".
            columns = pd.read_csv(
                io.BytesIO(text), sep=dialect.separator, index_col=False, nrows=0
            ).columns
            table = pd.read_csv(
                io.BytesIO(text),
                sep=dialect.separator,
                decimal=dialect.decimal,
                index_col=False,
                dtype={label_column: str} if label_column in columns else None,
            )
            if dialect.decimal == ",":
                table.attrs[POINTS] = read_commas(table, {label_column, id_column})
            if len(table) and table.iloc[:, -1].isna().any():
                _refuse_a_cut_line(name, text, len(names), dialect.separator)
            for column in {*_rounded(table), id_column}.intersection(columns):
                as_written = pd.read_csv(
                    io.BytesIO(text),
                    sep=dialect.separator,
                    index_col=False,
                    usecols=[column],
                    dtype=str,
                    keep_default_na=column != id_column,
                )[column]
                # Where a column holds fractions, too, floats are all there is.
                if column == id_column or as_written.dropna().str.fullmatch(_WHOLE).all():
                    table[column] = as_written
    except FileNotFoundError:
        raise InputError(f"no file {source}") from None
    except UnicodeDecodeError as error:
        what = f"is not {dialect.encoding.upper()} text ({error.reason}); give its --encoding"
        if utf_16:
            what += ", which may be utf-16"
        if packed:
            what = "is packed by gzip: unpack it"
        raise InputError(f"{name} cannot be read as CSV: it {what}") from None
    except InputError:
        raise
    except pd.errors.ParserWarning:
        hint = _hint_of_the_header(names) or f", which has {len(names)}"
        raise InputError(f"{name} has rows with more cells than its header{hint}") from None
    except pd.errors.ParserError as error:
        raise InputError(f"{name} cannot be read as CSV: {_in_words(error, names)}") from None
    except pd.errors.EmptyDataError:
        raise InputError(f"{name} cannot be read as CSV: it is empty") from None
    except (OSError, ValueError, csv.Error) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{name} cannot be read as CSV: {reason}") from None
    # Columns without a name, as spreadsheets leave empty ones behind, get names of pandas' own.
    twice = sorted({name for name in names if name.strip() and names.count(name) > 1})
    if twice:
        raise InputError(f"{name} has more than one column {twice[0]!r}")
    return table


def _hint_of_the_header(names: list[str]) -> str:
    """Why rows may have more cells than the first line, which has `names`; empty: nothing odd."""
    first = names[0].strip() if names else ""
    if first.startswith("#"):
        return f", the line {first!r}: remove comments above the columns' names"
    if first.startswith("sep="):  # Excel's own word for the separator
        return f", the line {first!r}: remove it, and give the --separator"
    if len(names) != 1:
        return ""
    if any(mark in first for mark in ",;\t|"):
        return ": give the --separator of its cells, and the --decimal mark"
    return (
        f", the line {first!r}: remove lines above the columns' names, or give the --separator of "
        "its cells"
    )


def _in_words(error: pd.errors.ParserError, names: list[str]) -> str:
    """What pandas' parser met; `names`: the header's cells."""
    if more := re.search(r"Expected \d+ fields in line (\d+), saw (\d+)", str(error)):
        hint = _hint_of_the_header(names)
        if not hint:
            hint = (
                f", which has {len(names)}; a cell that holds the separator needs quotes, and no "
                "blank before them"
            )
        return f"line {more[1]} has {more[2]} cells, more than the header{hint}"
    if opened := re.search(r"EOF inside string starting at row (\d+)", str(error)):
        return f"a quote that opens in line {int(opened[1]) + 1} is never closed"
    return " ".join(str(error).split())


def _rounded(table: pd.DataFrame) -> list[str]:
    """Columns that may have been whole numbers beyond 2^53: beside blanks pandas makes them floats.

    Floats skip whole numbers there, so that two that differ in their last digits become one.
    """
    floats = table.select_dtypes("float64")
    return floats.columns[floats.isna().any() & (floats.abs().max() >= 2**53)].tolist()


def _as_utf8(raw: bytes, decoder: str) -> bytes:
    """The text of `raw` in UTF-8, its lines, where they all end in a carriage return, in "\\n"."""
    text = raw.decode(decoder)
    return (text if "\n" in text else text.replace("\r", "\n")).encode()


def _lines(text: bytes, newline: str | None = "\n") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=newline)


def _refuse_a_cut_line(name: str, text: bytes, width: int, separator: str) -> None:
    """Raise `InputError` where the last line alone has fewer cells than the header.

    pandas would fill it up. Where others are short, too, whoever wrote the file leaves empty cells
    at the lines' ends out.
    """
    lines = csv.reader(_lines(text, newline=None), delimiter=separator)
    short = []
    try:
        for line in lines:
            if line and any(map(str.strip, line)):
                last = lines.line_num
                if len(line) < width:
                    short.append((last, len(line)))
    except csv.Error:  # a cell too long for this reader
        return
    if len(short) == 1 and short[0][0] == last:
        raise InputError(
            f"{name}, line {last}: {short[0][1]} cells, and the header has {width}; is the file "
            "cut short?"
        )


def _read_parquet(path: Path, named: tuple[str | None, ...]) -> pd.DataFrame:
    """The file's columns, and those of its index that are `named`."""
    if not path.is_file():
        raise InputError(f"no file {path}")
    try:
        table = _with_pyarrow(lambda: pd.read_parquet(path))
        if rounded := _rounded(table):
            exact = pd.read_parquet(path, columns=rounded, dtype_backend="numpy_nullable")
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
