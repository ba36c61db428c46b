"""`puicl predict`: score the unlabelled rows of a table, or of a folder of tables."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from puicl_cli.table_options import Decimal, Encoding, IdColumn, Separator, Sheet
from puicl_config import InputError, write_atomically
from puicl_config.speaking import speak

if TYPE_CHECKING:
    from puicl_model.files import Options


def predict(
    data: Annotated[
        str,
        typer.Option(
            help="CSV (with a header), Parquet or Excel file, or a folder of such files; - reads "
            "CSV from stdin."
        ),
    ],
    label_column: Annotated[
        str,
        typer.Option(
            help="Column that holds 1 or True for labelled positives, and 0, -1, False or nothing "
            "for all other rows."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            help="CSV or Parquet file to write, or a folder if --data is one; - writes CSV to "
            "stdout."
        ),
    ],
    positive_label: Annotated[
        str | None,
        typer.Option(
            help="Entry of the label column that marks positives; all others are unlabelled."
        ),
    ] = None,
    id_column: IdColumn = None,
    categorical_column: Annotated[
        list[str] | None,
        typer.Option(help="Column whose numbers are codes of categories; repeatable."),
    ] = None,
    class_prior: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|LEAST:MOST",
            help="Share of positives among the unlabelled rows, if known, or a range for it, "
            "such as 0:0.5 where positives are the rarer class. With a folder: the share in each "
            "table or part.",
        ),
    ] = None,
    n_estimators: Annotated[
        int | None,
        typer.Option(min=1, help="Forward passes to average (default: 16)."),
    ] = None,
    blend: Annotated[
        Literal["trees"] | None,
        typer.Option(help="Average the network's ranks with those of trees and nearest rows."),
    ] = None,
    precision: Annotated[
        Literal["float32", "bfloat16"] | None,
        typer.Option(
            help="Precision of the network (default: float32); bfloat16 is faster on processors "
            "that support it."
        ),
    ] = None,
    random_state: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=2**32 - 1,
            help="Seed of all random orders and draws (default: 0); another seed changes scores "
            "slightly.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write an HTML report to this file.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Weights: a shipped name (default: default) or a path.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Also write the fitted classifier to this file, for `puicl predict-new`. It "
            "holds rows of the table."
        ),
    ] = None,
    separator: Separator = ",",
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    sheet: Sheet = None,
    backend: Annotated[
        Literal["loky", "dask", "ray"], typer.Option(help="For folders: where the workers run.")
    ] = "loky",
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="For folders: number of workers; default: one per core."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="For folders: join this Dask scheduler or Ray cluster.")
    ] = None,
    one_table: Annotated[
        bool,
        typer.Option(
            "--one-table",
            help="For folders: the files are parts of one table, and each is scored from the "
            "labelled positives of all.",
        ),
    ] = False,
) -> None:
    """Write P(positive) of each row of a table, in the order of the input.

    The output has the columns row (from 0), the id column if one is named, labeled (1 or 0) and
    p_positive, which is empty for labelled positives because their class is known. CSV is written
    with commas, decimal points and UTF-8, whatever the format of --data.

    If --data is a folder, each table in it and in its subfolders is scored by itself, to a file of
    the same name in the folder --out. Run the same command again to resume.
    """
    from puicl_model.files import STREAM, Dialect, Options

    options = Options(
        label_column=label_column,
        positive_label=positive_label,
        id_column=id_column,
        class_prior=_share_or_range(class_prior),
        n_estimators=n_estimators,
        blend=blend,
        model=None if model is None else str(model),
        categorical_columns=tuple(categorical_column or ()),
        precision=precision,
        random_state=random_state,
        dialect=Dialect(separator, decimal, encoding),
        sheet=sheet,
    )
    if data != STREAM and Path(data).is_dir():
        # Imported late, since the packages that distribute work are slow to import.
        from puicl_model.files.folder import score_folder

        for option, path in {"--report": report, "--save": save}.items():
            if path is not None:
                raise InputError(f"{option} is for one table: give it with that file as --data")
        if out == STREAM:
            raise InputError(f"--out {out} is for one table: give a folder for those of {data}")
        score_folder(Path(data), out, options, jobs, backend, address, one_table)
        return
    for_folders = {"--backend": backend != "loky", "--jobs": jobs, "--address": address}
    for name, given in {**for_folders, "--one-table": one_table}.items():
        if given:
            raise InputError(f"{name} is for a folder of tables, but {data} is not a folder")

    _score_file(data, out, options, report, save)


def _score_file(
    data: str, out: str, options: "Options", report: Path | None, save: Path | None
) -> None:
    """Score one table, and write its page and its classifier where they are asked for."""
    from puicl_model.files import (
        STREAM,
        report_page,
        score_table,
        shown,
        split_columns,
        write_table,
    )
    from puicl_model.weights import find_weights

    name = "stdin" if data == STREAM else shown(data)
    table = options.read(data)
    split_columns(table, name, options)
    written = {"--out": None if out == STREAM else Path(out), "--report": report, "--save": save}
    _check_targets(written, data, find_weights(options.model))
    scored = score_table(table, name, options)
    try:
        if report is not None:
            page = report_page(
                scored.classifier,
                scored.features,
                scored.scores,
                options.id_column,
                name,
                scored.doubts,
            )
            write_atomically(report, page.encode())
        write_table(scored.scores, out)
    except OSError as error:
        raise InputError(f"the answer cannot be written: {error}") from None
    for doubt in scored.doubts:
        speak(f"warning: {doubt}", sys.stderr)
    if save is not None:
        try:
            scored.classifier.save(save)
        except (OSError, ValueError) as error:  # ValueError: more text than the file can hold
            raise InputError(f"--save {save}: {error}; the scores are written") from None
    if out == STREAM:
        speak(scored.says("stdout"), sys.stderr)
    else:
        print(scored.says(out))


def _check_targets(written: dict[str, Path | None], data: str, model: Path) -> None:
    """Check the files to write, by option; raises `InputError` where one cannot be."""
    from puicl_model.files import STREAM, check_target

    places = {"--model": model}
    for option, path in written.items():
        if path is None:
            continue
        if str(path) == STREAM:
            raise InputError(f"{option} needs a file: - is for --data and --out")
        check_target(str(path), data, option)
        for other, place in places.items():
            if path.resolve() == place.resolve():
                raise InputError(f"{option} and {other} are both {place}; give two files")
        places[option] = path


def _share_or_range(text: str | None) -> float | tuple[float, float] | None:
    """Parse --class-prior: a share such as 0.03, or a range such as 0:0.5.

    Raises `InputError` for anything else.
    """
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) not in (1, 2):
        raise InputError(
            f"--class-prior {text}: give a share such as 0.03, or a range such as 0:0.5"
        )
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])
