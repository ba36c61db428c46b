"""Score the rows of a file with a saved classifier."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from puicl_config import InputError
from puicl_model.classifier import PUICLClassifier
from puicl_model.files.decimals import POINTS
from puicl_model.files.scoring import refuse_name_of_scores, scores_of
from puicl_model.files.wording import for_the_command, lacks, refusal


@dataclass(frozen=True)
class NewScores:
    """scores: rows of the output; left_out: columns that are no features; doubts: warnings."""

    scores: pd.DataFrame
    left_out: list[str]
    doubts: list[str]


def score_new_rows(
    classifier: PUICLClassifier, table: pd.DataFrame, source: str, id_column: str | None = None
) -> NewScores:
    """Score all rows of `table`, which errors call `source`; no row counts as labelled.

    Columns are found by name, in any order; those that the classifier was not fitted with are left
    out. The scores have the columns of `scoring.score_table`, with labeled 0 throughout.

    Raises `InputError` if the classifier was fitted without names of columns that are text, if the
    table lacks one of them or the id column, and for cells that the classifier cannot read.
    """
    names = getattr(classifier, "feature_names_in_", None)
    if names is None:
        raise InputError(
            "the classifier was fitted to an array, or to a frame whose names of columns are no "
            "text: score new rows with it in Python"
        )
    refuse_name_of_scores(id_column)
    if id_column in names:
        raise InputError(f"--id-column {id_column}: the classifier reads that column as a feature")
    for column in (*names, *([id_column] if id_column else [])):
        if column not in table.columns:
            raise InputError(lacks(table, str(column), source))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        try:
            proba = classifier.predict_proba(table[[*names]])[:, 1]
        except InputError:
            raise
        except ValueError as error:
            raise InputError(refusal(source, error)) from None
    scores = scores_of(table, np.zeros(len(table), dtype=bool), id_column)
    scores["p_positive"] = proba
    left_out = [str(name) for name in table.columns if name not in {*names, id_column}]
    doubts = [for_the_command(str(w.message)) for w in told if w.category is UserWarning]
    if unsure := _pointed(table, names):
        doubts.append(
            f"points in {', '.join(unsure)} are taken for marks of thousands (1.234 for 1234), "
            "since --decimal is a comma: where they mark fractions, write commas"
        )
    return NewScores(scores, left_out, doubts)


def _pointed(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Columns whose points were read as marks of thousands, though no comma beside them says so.

    In the classifier's table, another cell such as 0.125 may have said that they mark fractions.
    """
    points = table.attrs.get(POINTS, {})
    return [
        name
        for name in names
        if points.get(name) == "thousands"
        and (pd.to_numeric(table[name], errors="coerce").dropna() % 1 == 0).all()
    ]
