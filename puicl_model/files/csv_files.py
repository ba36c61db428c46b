"""Read CSV files with any separator, decimal mark and encoding, and explain errors in them."""

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
    """How a CSV file is written: the separator of cells, the decimal mark, and the encoding.

    The decimal mark also applies to text in other kinds of files. It may equal the separator if
    cells are quoted. Raises `InputError` for an invalid separator, decimal mark or encoding.
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
            "a".encode(self.encoding)  # fails for codecs that are not text encodings
        except (LookupError, UnicodeError):
            raise InputError(
                f"--encoding {self.encoding}: there is no such encoding; give one such as latin-1, "
                "cp1252 or utf-16"
            ) from None

    @property
    def decoder(self) -> str:
        """Python's name of the encoding, in the variant that skips a byte order mark."""
        is_utf_8 = codecs.lookup(self.encoding).name == "utf-8"
        return "utf-8-sig" if is_utf_8 else self.encoding


def read_csv(
    source: str,
    label_column: str | None,
    id_column: str | None,
    dialect: Dialect,
    words: bool = False,
) -> pd.DataFrame:
    """Read the CSV file `source`, or stdin if it is `STREAM`.

    See `formats.read_table` for which columns stay text. Raises `InputError` if the file cannot be
    read, or if two columns have the same name.
    """
    name = "stdin" if source == STREAM else source
    names: list[str] = []
    try:
        text = _read_utf8(source, name, dialect)
        lines = csv.reader(_lines(text), delimiter=dialect.separator)
        names = next((line for line in lines if any(map(str.strip, line))), [])
        with warnings.catch_warnings():
            # pandas warns of rows longer than the header, whose cells it would shift or cut.
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
    # Nameless columns, such as empty ones from spreadsheets, may repeat: pandas names them.
    twice = sorted({name for name in names if name.strip() and names.count(name) > 1})
    if twice:
        raise InputError(f"{name} has more than one column {twice[0]!r}")
    return table


def _read_utf8(source: str, name: str, dialect: Dialect) -> bytes:
    """The text of `source` in UTF-8; errors call the source `name`. See `_as_utf8`.

    Returns bytes to save memory: Python's text streams take four bytes per character. Raises
    `InputError` if the content is not text, or is in another encoding.
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
    """Parse `text` in UTF-8 to a table; its label column stays text."""
    with_label = label_column in _columns(text, dialect.separator)
    table = pd.read_csv(
        io.BytesIO(text),
        sep=dialect.separator,
        decimal=dialect.decimal,
        index_col=False,
        # Parsing in parts would read a code 038 as text in parts with V57, and as 38 in others.
        low_memory=False,
        dtype={label_column: str} if with_label else None,
    )
    if dialect.decimal == ",":
        table.attrs[POINTS] = read_commas(table, {label_column, id_column})
    return table


def _columns(text: bytes, separator: str) -> pd.Index:
    """Column names as pandas gives them; a nameless one, such as a saved index, is "Unnamed: 0"."""
    return pd.read_csv(io.BytesIO(text), sep=separator, index_col=False, nrows=0).columns


def _keep_as_written(
    table: pd.DataFrame,
    text: bytes,
    label_column: str | None,
    in_words: set[str | None],
    separator: str,
) -> None:
    """Replace columns `in_words`, and integers that pandas has rounded, by their original text."""
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
        # A column with fractions, too, stays as floats.
        if column in in_words or as_written.dropna().str.fullmatch(_WHOLE).all():
            table[column] = as_written


def rounded(table: pd.DataFrame) -> list[str]:
    """Columns that may be rounded integers: pandas reads integers with missing cells as floats.

    Beyond 2^53 floats cannot represent every integer, so numbers that differ in the last digits
    would become equal.
    """
    floats = table.select_dtypes("float64")
    return floats.columns[floats.isna().any() & (floats.abs().max() >= 2**53)].tolist()


def _hint_of_the_header(names: list[str]) -> str:
    """A hint why rows may have more cells than the first line's `names`; empty if none is known."""
    first = names[0].strip() if names else ""
    if first.startswith("#"):
        return f", the line {first!r}: remove comments above the columns' names"
    if first.startswith("sep="):  # Excel's way to declare the separator
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
    """Describe the error of pandas' parser for the user; `names`: the header's cells."""
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
    """`raw` decoded and re-encoded as UTF-8; line ends become "\\n" if all are carriage returns."""
    text = raw.decode(decoder)
    return (text if "\n" in text else text.replace("\r", "\n")).encode()


def _lines(text: bytes, newline: str | None = "\n") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text), "utf-8", newline=newline)


def _refuse_a_cut_line(name: str, text: bytes, width: int, separator: str) -> None:
    """Raise `InputError` if the last line is the only one with fewer cells than the header.

    pandas would fill it with missing cells. If other lines are short, too, the file simply omits
    empty cells at the ends of lines.
    """
    lines = csv.reader(_lines(text, newline=None), delimiter=separator)
    short = []
    try:
        for line in lines:
            if line and any(map(str.strip, line)):
                last = lines.line_num
                if len(line) < width:
                    short.append((last, len(line)))
    except csv.Error:  # a cell is too long for Python's csv reader
        return
    if len(short) == 1 and short[0][0] == last:
        raise InputError(
            f"{name}, line {last}: {short[0][1]} of the header's {width} cells; is the file "
            "cut short?"
        )
