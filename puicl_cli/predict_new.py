"""`puicl predict-new`: score rows that were not in the table, with a saved classifier."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from puicl_cli.table_options import Decimal, Encoding, IdColumn, Separator, Sheet
from puicl_config import InputError, counted
from puicl_config.speaking import speak


def predict_new(
    classifier: Annotated[
        Path,
        typer.Option(help="File that `puicl predict --save` or `PUICLClassifier.save` wrote."),
    ],
    data: Annotated[
        str,
        typer.Option(help="CSV (with a header), Parquet or Excel file; - reads CSV from stdin."),
    ],
    out: Annotated[str, typer.Option(help="CSV or Parquet file to write; - writes CSV to stdout.")],
    id_column: IdColumn = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    sheet: Sheet = None,
) -> None:
    """Write P(positive) of rows that were not in the table of a saved classifier.

    Columns are found by their names; others are left out. The output has the columns of
    `puicl predict`. A row's score depends on nothing but the classifier and the row. Decimal mark
    and spelling of the cells must be those of the classifier's table.
    """
    from puicl_model import PUICLClassifier
    from puicl_model.files import (
        STREAM,
        Dialect,
        check_target,
        read_table,
        score_new_rows,
        shown,
        write_table,
    )

    name = "stdin" if data == STREAM else shown(data)
    if data != STREAM and Path(data).is_dir():
        raise InputError(f"{name} is a folder; give one file")
    dialect = Dialect(separator, decimal, encoding)
    check_target(out, data)
    if out != STREAM and Path(out).resolve() == classifier.resolve():
        raise InputError(f"--out {out} would overwrite the classifier; give another file")
    fitted = PUICLClassifier.load(classifier, device="auto")  # its own may not be here
    table = read_table(data, id_column=id_column, dialect=dialect, sheet=sheet)
    scored = score_new_rows(fitted, table, name, id_column)
    try:
        write_table(scored.scores, out)
    except OSError as error:
        raise InputError(f"the answer cannot be written: {error}") from None
    if scored.left_out:
        speak(f"note: no features, left out: {', '.join(scored.left_out)}", sys.stderr)
    for doubt in scored.doubts:
        speak(f"warning: {doubt}", sys.stderr)
    where = "stdout" if out == STREAM else out
    sentence = f"{where}: {counted(len(table), 'new row')} scored"
    speak(sentence, sys.stderr if out == STREAM else sys.stdout)
