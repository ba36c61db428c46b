"""The command's words: what a classifier's messages say of files, columns and options."""

import pandas as pd

from puicl_model.preprocessing.column_doubts import KEEP_THEM, LEAVE_OUT, SPELL

# Maps advice in the classifier's messages to the corresponding options of the command.
_OPTIONS = {
    "give positive_label=": "give --positive-label",
    "blend='trees'": "--blend trees",
    "no entry equals positive_label=": "no entry equals --positive-label ",
    "give class_prior": "give --class-prior",
    ", or name the column in categorical_features": ", or give it as --categorical-column",
    "name the columns in categorical_features": "give each as --categorical-column",
    KEEP_THEM: " (--id-column writes one beside the scores)",
    LEAVE_OUT: f"{LEAVE_OUT}, or give one as --id-column",
    SPELL: f"{SPELL}, or give --decimal (and --separator for CSV) as in the file",
}


def of_the_column(label_column: str, sentence: str) -> str:
    """Replace a leading `s`, the classifier's name for the labels, by the label column's name."""
    return f"column {label_column}{sentence[1:]}" if sentence.startswith("s ") else sentence


def for_the_command(sentence: str) -> str:
    """Replace a classifier's parameters in its advice by the command's options."""
    for parameter, option in _OPTIONS.items():
        sentence = sentence.replace(parameter, option)
    return sentence


def refusal(source: str, error: ValueError) -> str:
    """What the classifier found wrong with the table that errors call `source`."""
    sentence = for_the_command(str(error))
    return f"{source}{',' if sentence.startswith('column ') else ':'} {sentence}"


def lacks(table: pd.DataFrame, column: str, source: str) -> str:
    """That `table` has no such column, and which columns it has."""
    # Quote names with blanks around them, since the difference is invisible otherwise.
    names = [str(name) for name in table.columns]
    there = ", ".join(name if name == name.strip() else repr(name) for name in names)
    hint = ""
    if len(names) == 1 and any(mark in there for mark in ";\t| "):
        hint = ": give the --separator of its cells"
    return f"{source} has no column {column!r}; it has {there}{hint}"
