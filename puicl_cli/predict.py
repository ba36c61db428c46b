"""`puicl predict`: score the unlabelled rows of a CSV file."""

import csv
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from puicl_config import InputError, write_atomically
from puicl_model import PUICLClassifier


def predict(
    data: Annotated[Path, typer.Option(help="CSV file with a header, one row an example.")],
    label_column: Annotated[
        str, typer.Option(help="Column that is 1 for labelled positives, 0 or empty otherwise.")
    ],
    out: Annotated[Path, typer.Option(help="CSV file to write.")],
    model: Annotated[
        Path | None, typer.Option(help="Weights (model.safetensors); default: the shipped ones.")
    ] = None,
) -> None:
    """Write each row's P(positive), in the input's order.

    The output has the columns row (from 0), labeled (1 or 0) and p_positive, which is empty for
    the labelled positives: their class is known.
    """
    table = _read(data)
    if label_column not in table.columns:
        raise InputError(
            f"{data} has no column {label_column!r}; it has {', '.join(map(str, table.columns))}"
        )
    features = _numeric_features(table.drop(columns=label_column), data)
    _check_target(out, data)
    try:
        classifier = PUICLClassifier(model).fit(features, table[label_column])
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{data}, column {label_column}: {error}") from None
    labeled = np.ones(len(table), dtype=bool)
    labeled[classifier.unlabeled_rows_] = False
    scores = pd.DataFrame({"row": np.arange(len(table)), "labeled": labeled.astype(int)})
    scores.loc[~labeled, "p_positive"] = classifier.unlabeled_proba_
    write_atomically(out, scores.to_csv(index=False).encode())
    print(
        f"{out}: {int((~labeled).sum())} unlabelled rows scored from {int(labeled.sum())} labelled "
        f"positives; estimated share of positives among the unlabelled: "
        f"{classifier.class_prior_:.3f}"
    )


def _read(path: Path) -> pd.DataFrame:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            names = next(csv.reader(file), [])
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would shift or cut their cells.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(path, index_col=False)
    except FileNotFoundError:
        raise InputError(f"no file {path}") from None
    except pd.errors.ParserWarning:
        raise InputError(f"{path} has rows with more cells than its header") from None
    except (OSError, ValueError, csv.Error) as error:  # pandas' parser errors are ValueErrors
        raise InputError(f"{path} cannot be read as CSV: {' '.join(str(error).split())}") from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{path} has more than one column {twice[0]!r}")
    if table.empty:
        raise InputError(f"{path} has no rows")
    return table


def _check_target(out: Path, data: Path) -> None:
    if not out.parent.is_dir():
        raise InputError(f"the folder of {out} does not exist")
    if out.is_dir():
        raise InputError(f"{out} is a folder; give a file for the scores")
    if out.exists() and out.samefile(data):
        raise InputError(f"--out {out} would overwrite the data; give another file")


def _numeric_features(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    if table.columns.empty:
        raise InputError(f"{path} has no feature columns beside the label")
    numbers = {}
    for name, column in table.items():
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float)
        bad = np.flatnonzero(~np.isfinite(values))
        if len(bad):
            cell = column.iloc[bad[0]]
            if pd.isna(cell):
                problem = "the cell is empty; fill or drop it"
            elif np.isinf(values[bad[0]]):
                problem = "the cell is infinite; fill or drop it"
            else:
                problem = f"{cell!r} is not a number; encode or drop the column"
            raise InputError(f"{path}, column {name}, data row {bad[0]}: {problem}")
        numbers[name] = values
    return pd.DataFrame(numbers)
