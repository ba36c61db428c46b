"""CSV as people write it: its separators, decimal marks and encodings, and what may be wrong."""

import codecs
import csv
import io
import re
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from puicl_config import InputError
from puicl_model.files.decimals import POINTS, read_commas

STREAM = "-"
_WHOLE = r"\s*[+-]?\d+\s*"
_BY_NAME = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True)
class Dialect:
    """How CSV is written: what separates cells, the decimal mark, the encoding.

    The decimal mark is that of text in other files, too. It may be the separator where cells are
    quoted. Raises `InputError` for what cannot be.
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


def read_csv(
    source: str,
    label_column: str | None,
    id_column: str | None,
    dialect: Dialect,
    words: bool = False,
) -> pd.DataFrame:
    """The CSV file `source`, or stdin where it is `STREAM`; see `read_table` for what is text.

    Raises `InputError` where it cannot be read, or a column's name stands in it twice.
    """
    name = "stdin" if source == STREAM else source
    names: list[str] = []
    try:
        text = _read_utf8(source, name, dialect)
        lines = csv.reader(_lines(text), delimiter=dialect.separator)
        names = next((line for line in lines if any(map(str.strip, line))), [])
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would shift or cut their cells.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = _parsed(text, label_column, id_column, dialect)
            if len(table) and table.iloc[:, -1].isna().any():
                _refuse_a_cut_line(name, text, len(names), dialect.separator)
            in_words = {id_column, label_column} if words else {id_column}
            _keep_as_written(table, text, label_column, in_words, dialect.separator)
    except FileNotFoundError:
        raise InputError(f"no file {source}") from None
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


def _read_utf8(source: str, name: str, dialect: Dialect) -> bytes:
    """The text of `source`, called `name`, in UTF-8; see `_as_utf8`.

    Held once, as bytes: Python's own streams of text take four a character. Raises `InputError`
    where it is no text, or in another encoding.
    """
    raw = sys.stdin.buffer.read() if source == STREAM else Path(source).read_bytes()
    try:
        text = _as_utf8(raw, dialect.decoder)
    except UnicodeDecodeError as error:
        what = f"is not {dialect.encoding.upper()} text ({error.reason}); give its --encoding"
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            what += ", which may be utf-16"
        if raw[:2] == b"\x1f\x8b":
            what = "is packed by gzip: unpack it"
        raise InputError(f"{name} cannot be read as CSV: it {what}") from None
    if b"\0" in text:
        hint = "where it is UTF-16, give --encoding utf-16, otherwise repair the file"
        raise InputError(f"{name} cannot be read as CSV: it holds NUL characters; {hint}")
    return text


def _parsed(
    text: bytes, label_column: str | None, id_column: str | None, dialect: Dialect
) -> pd.DataFrame:
    """The table that `text` in UTF-8 holds, its label column as text."""
    with_label = label_column in _columns(text, dialect.separator)
    table = pd.read_csv(
        io.BytesIO(text),
        sep=dialect.separator,
        decimal=dialect.decimal,
        index_col=False,
        # By parts, a code 038 would be text in those with V57 and the number 38 in others.
        low_memory=False,
        dtype={label_column: str} if with_label else None,
    )
    if dialect.decimal == ",":
        table.attrs[POINTS] = read_commas(table, {label_column, id_column})
    return table


def _columns(text: bytes, separator: str) -> pd.Index:
    """As pandas calls them: one without a name, as a saved index, is "Unnamed: 0"."""
    return pd.read_csv(io.BytesIO(text), sep=separator, index_col=False, nrows=0).columns


def _keep_as_written(
    table: pd.DataFrame,
    text: bytes,
    label_column: str | None,
    in_words: set[str | None],
    separator: str,
) -> None:
    """Put into `table` as text what is `in_words`, and whole numbers that pandas has rounded."""
    for column in {*rounded(table), *in_words}.intersection(table.columns):
        as_written = pd.read_csv(
            io.BytesIO(text),
            sep=separator,
            index_col=False,
            usecols=[column],
            dtype=str,
            keep_default_na=column not in in_words,
            na_values=[""] if column == label_column else None,
        )[column]
        # Where a column holds fractions, too, floats are all there is.
        if column in in_words or as_written.dropna().str.fullmatch(_WHOLE).all():
            table[column] = as_written


def rounded(table: pd.DataFrame) -> list[str]:
    """Columns that may have been whole numbers beyond 2^53: beside blanks pandas makes them floats.

    Floats skip whole numbers there, so that two that differ in their last digits become one.
    """
    floats = table.select_dtypes("float64")
    return floats.columns[floats.isna().any() & (floats.abs().max() >= 2**53)].tolist()


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
