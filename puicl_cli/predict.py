"""`puicl predict`: score the unlabelled rows of a CSV file."""

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
    if not out.parent.is_dir():
        raise InputError(f"the folder of {out} does not exist")
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
        table = pd.read_csv(path)
    except FileNotFoundError:
        raise InputError(f"no file {path}") from None
    except (OSError, ValueError) as error:  # pandas' parser errors are ValueErrors
        raise InputError(f"{path} cannot be read as CSV: {' '.join(str(error).split())}") from None
    if table.empty:
        raise InputError(f"{path} has no rows")
    return table


def _numeric_features(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    if table.columns.empty:
        raise InputError(f"{path} has no feature columns beside the label")
    for name in table.columns:
        column = table[name]
        if not (pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column)):
            numbers = pd.to_numeric(column, errors="coerce")
            row = int(np.flatnonzero(numbers.isna())[0])
            raise InputError(
                f"{path}, column {name}, data row {row}: {column.iloc[row]!r} is not a number; "
                "encode or drop the column"
            )
        bad = ~np.isfinite(column.to_numpy(dtype=float))
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"{path}, column {name}, data row {row}: the cell is "
                f"{'empty' if pd.isna(column.iloc[row]) else 'infinite'}; fill or drop it"
            )
    return table
