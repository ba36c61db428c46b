"""Options of all commands that read a table from a file."""

from typing import Annotated

import typer

IdColumn = Annotated[
    str | None,
    typer.Option(help="Column that names the rows: copied to the output, never a feature."),
]
Separator = Annotated[str, typer.Option(help="Separator of cells in CSV: a character, or tab.")]
Decimal = Annotated[
    str, typer.Option(help="Decimal mark of numbers stored as text: a point or a comma.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of CSV, such as latin-1 or utf-16.")]
Sheet = Annotated[
    str | None, typer.Option(help="Sheet of an Excel file; default: the only one with entries.")
]
