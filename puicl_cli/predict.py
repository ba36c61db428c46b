"""`puicl predict`: score the unlabelled rows of a table."""

import sys
import warnings
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import typer

from puicl_cli.report_page import report_page
from puicl_cli.tables import STREAM, check_target, read_table, write_table
from puicl_config import InputError, write_atomically
from puicl_model import PUICLClassifier


def predict(
    data: Annotated[
        str, typer.Option(help="CSV file with a header, or Parquet file; - is CSV from stdin.")
    ],
    label_column: Annotated[
        str, typer.Option(help="Column that is 1 for labelled positives, 0 or empty otherwise.")
    ],
    out: Annotated[str, typer.Option(help="CSV or Parquet file to write; - is CSV to stdout.")],
    positive_label: Annotated[
        str | None,
        typer.Option(help="The label column's entry for positives; all else is unlabelled."),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option(help="Column that names the rows: kept, never a feature.")
    ] = None,
    class_prior: Annotated[
        float | None,
        typer.Option(help="Share of positives among the unlabelled rows, where it is known."),
    ] = None,
    n_estimators: Annotated[
        int | None, typer.Option(min=1, help="Forward passes to average; 1 is the single one.")
    ] = None,
    blend: Annotated[
        Literal["trees"] | None, typer.Option(help="Average ranks with cross-fitted trees.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page (HTML) on the answer.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="Weights: a shipped name or a path.")] = None,
) -> None:
    """Write each row's P(positive), in the input's order.

    The output has the columns row (from 0), the id column where one is named, labeled (1 or 0)
    and p_positive, which is empty for the labelled positives: their class is known.
    """
    table = read_table(data)
    for column in (label_column, *([id_column] if id_column else [])):
        if column not in table.columns:
            there = ", ".join(map(str, table.columns))
            raise InputError(f"{data} has no column {column!r}; it has {there}")
    features = table.drop(columns=[label_column, *([id_column] if id_column else [])])
    if features.columns.empty:
        raise InputError(f"{data} has no feature columns beside the label")
    check_target(out, data)
    if report is not None:
        check_target(str(report), data, "--report")

    if class_prior is not None and not 0 < class_prior < 1:
        raise InputError(f"--class-prior must lie between 0 and 1, not {class_prior}")
    parameters = {} if n_estimators is None else {"n_estimators": n_estimators}
    classifier = PUICLClassifier(model, blend=blend, positive_label=positive_label, **parameters)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        try:
            classifier.fit(features, table[label_column], class_prior=class_prior)
        except InputError:
            raise
        except ValueError as error:
            about_features = str(error).startswith("column ")
            where = data if about_features else f"{data}, column {label_column}"
            raise InputError(f"{where}{',' if about_features else ':'} {error}") from None
    doubts = [str(warning.message) for warning in told if warning.category is UserWarning]

    labeled = np.ones(len(table), dtype=bool)
    labeled[classifier.unlabeled_rows_] = False
    scores = pd.DataFrame({"row": np.arange(len(table)), "labeled": labeled.astype(int)})
    if id_column:
        scores.insert(1, id_column, table[id_column])
    scores.loc[~labeled, "p_positive"] = classifier.unlabeled_proba_
    if report is not None:
        page = report_page(classifier, features, scores, id_column, data, doubts)
        write_atomically(report, page.encode())
    write_table(scores, out)
    for doubt in doubts:
        print(f"warning: {doubt}", file=sys.stderr)
    low, high = classifier.class_prior_interval_
    interval = "" if np.isnan(low) or low == high else f" ({low:.3f} to {high:.3f})"
    print(
        f"{out}: {int((~labeled).sum())} unlabelled rows scored from {int(labeled.sum())} labelled "
        f"positives; estimated share of positives among the unlabelled: "
        f"{classifier.class_prior_:.3f}{interval}",
        file=sys.stderr if out == STREAM else sys.stdout,
    )
