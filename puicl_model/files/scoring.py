"""Score one table with the command's options, with errors that name the file and column."""

import warnings
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from puicl_config import InputError, counted
from puicl_model.classifier import PUICLClassifier
from puicl_model.files.csv_files import Dialect
from puicl_model.files.decimals import plain_label
from puicl_model.files.formats import read_table
from puicl_model.files.wording import (
    for_the_command,
    lacks,
    of_the_column,
    refusal,
)
from puicl_model.parameters import is_range, is_share
from puicl_model.weights import find_weights, refuse_folder

# Columns of the scores besides the id column.
_OUTPUT = ("row", "labeled", "p_positive")


@dataclass(frozen=True)
class Options:
    """The user's choices for every table, as plain data. Raises `InputError` for invalid ones."""

    label_column: str
    positive_label: str | None = None
    id_column: str | None = None
    class_prior: float | tuple[float, float] | None = None
    n_estimators: int | None = None
    blend: Literal["trees"] | None = None
    precision: Literal["float32", "bfloat16"] | None = None
    model: str | None = None
    categorical_columns: tuple[str, ...] = ()
    random_state: int | None = None
    dialect: Dialect = field(default_factory=Dialect)
    sheet: str | None = None

    def __post_init__(self):
        if self.class_prior is not None and not (
            is_share(self.class_prior) or is_range(self.class_prior)
        ):
            given = self.class_prior
            shown = ":".join(f"{end:g}" for end in given) if isinstance(given, tuple) else given
            raise InputError(
                f"--class-prior must lie between 0 and 1, or be a range such as 0:0.5, not {shown}"
            )
        if self.id_column == self.label_column:
            raise InputError(f"--id-column and --label-column are both {self.id_column!r}")
        for column in self.categorical_columns:
            if column in (self.id_column, self.label_column):
                raise InputError(f"--categorical-column {column}: that is no feature")
        refuse_name_of_scores(self.id_column)
        refuse_folder(find_weights(self.model))

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON-compatible data, for records."""
        prior = self.class_prior
        return asdict(self) | {
            "categorical_columns": sorted(self.categorical_columns),
            "class_prior": list(prior) if isinstance(prior, tuple) else prior,
        }

    def read(self, source: str) -> pd.DataFrame:
        """Read the table `source` with these options; its positive labels equal `positive`."""
        table = read_table(
            source,
            self.label_column,
            self.id_column,
            self.dialect,
            self.sheet,
            words=self.positive_label is not None,  # the label may be NA or None
        )
        if self.dialect.decimal == "," and self.label_column in table:
            labels = table[self.label_column]
            if labels.dtype == object or isinstance(labels.dtype, pd.StringDtype):
                table[self.label_column] = labels.map(plain_label)
        return table

    @property
    def positive(self) -> str | None:
        """The positive label as `read` returns it: with decimal commas, 1,0 becomes 1.0."""
        decimal = self.dialect.decimal
        return plain_label(self.positive_label) if decimal == "," else self.positive_label

    def classifier(self) -> PUICLClassifier:
        """A new, unfitted classifier with these options."""
        chosen: dict[str, Any] = {
            "n_estimators": self.n_estimators,
            "precision": self.precision,
            "categorical_features": self.categorical_columns or None,
            "random_state": self.random_state,
        }
        return PUICLClassifier(
            self.model,
            blend=self.blend,
            positive_label=self.positive,
            **{name: value for name, value in chosen.items() if value is not None},
        )


@dataclass(frozen=True)
class Scored:
    """A scored table.

    scores: rows of the output; features: the columns that were fitted; doubts: warnings.
    """

    scores: pd.DataFrame
    classifier: PUICLClassifier
    features: pd.DataFrame
    doubts: list[str]

    def says(self, where: str) -> str:
        """A sentence that summarises the result for the user; where: the place of the scores."""
        labeled = int(self.scores["labeled"].sum())
        low, high = self.classifier.class_prior_interval_
        interval = "" if np.isnan(low) else f" ({low:.3f} to {high:.3f})"
        what = "estimated share"
        if low == high:
            what, interval = "share", ", as given"
        return (
            f"{where}: {counted(len(self.scores) - labeled, 'unlabelled row')} scored from "
            f"{counted(labeled, 'labelled positive')}; {what} of positives among the unlabelled: "
            f"{self.classifier.class_prior_:.3f}{interval}"
        )


def split_columns(table: pd.DataFrame, source: str, options: Options) -> pd.DataFrame:
    """Return the features of `table`, without its label and id columns.

    Raises `InputError` if there are none, or if the options name a column that it lacks.
    """
    apart = [name for name in (options.label_column, options.id_column) if name]
    for column in (*apart, *options.categorical_columns):
        if column not in table.columns:
            raise InputError(lacks(table, column, source))
    features = table.drop(columns=apart)
    if features.columns.empty:
        raise InputError(f"{source} has no feature columns beside the label")
    return features


def score_table(
    table: pd.DataFrame,
    source: str,
    options: Options,
    others: pd.DataFrame | None = None,
    verbose: bool | None = None,
) -> Scored:
    """Score the unlabelled rows of `table`, which errors call `source`.

    others: labelled positives of other tables with the same columns, to read in addition; verbose:
    see `PUICLClassifier`.

    The scores have the columns row (from 0), the id column if one is named, labeled (1 or 0) and
    p_positive (missing for labelled rows). Raises `InputError` for a table that cannot be scored.
    """
    features = split_columns(table, source, options)
    s, read = table[options.label_column], features
    if others is not None:
        read = pd.concat([features, others[features.columns]], ignore_index=True)
        s = pd.concat([s, others[options.label_column]], ignore_index=True)
    classifier = options.classifier().set_params(verbose=verbose)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        try:
            classifier.fit(read, s, class_prior=options.class_prior)
        except InputError:
            raise
        except ValueError as error:
            if str(error).startswith("s "):  # the classifier's name for the labels
                source = f"{source}, column {options.label_column}"
            raise InputError(refusal(source, error)) from None
    labeled = np.ones(len(table), dtype=bool)
    labeled[classifier.unlabeled_rows_] = False
    scores = scores_of(table, labeled, options.id_column)
    scores.loc[~labeled, "p_positive"] = classifier.unlabeled_proba_
    doubts = [
        for_the_command(of_the_column(options.label_column, str(warning.message)))
        for warning in told
        if warning.category is UserWarning
    ]
    return Scored(scores, classifier, features, doubts)


def scores_of(table: pd.DataFrame, labeled: np.ndarray, id_column: str | None) -> pd.DataFrame:
    """The output for `table`, with p_positive still missing everywhere; labeled: boolean [n]."""
    scores = pd.DataFrame(
        {"row": np.arange(len(table)), "labeled": labeled.astype(int), "p_positive": np.nan}
    )
    if id_column:
        scores.insert(1, id_column, table[id_column])
    return scores


def refuse_name_of_scores(id_column: str | None) -> None:
    """Raise `InputError` if the id column has the name of a column of the scores."""
    if id_column in _OUTPUT:
        raise InputError(
            f"--id-column {id_column}: the scores have a column of that name; give the data's "
            "another one"
        )
