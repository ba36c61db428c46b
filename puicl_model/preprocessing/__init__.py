"""Convert real-world tables to the numbers that the network reads.

`table` holds `TablePreprocessor`, whose fit goes through these modules:

reading      any kind of table becomes a frame, and its texts that mean missing become missing cells
choice       each column gets the encoder that its cells call for, or a reason to be left out
columns      the encoders of numbers, dates and categories
levels       in which order the levels of a category are coded: by `scales` of words, and by numbers
             and the `magnitudes` of their units
fit_doubts   all warnings, which `column_doubts` words; `odd_numbers` finds what some are about

To choose, `choice` asks of a column's cells, in this order:

cells, dates     whether Python and pandas read them, and as what
find_spelling    whether they share a notation that these do not read: of `spelled_measures`,
                 `spelled_dates` or `spelled_numbers`, which takes texts apart by `number_cells` and
                 tells amounts from codes by `amounts`; `spelling` is what the three have in common
placeholders     whether they would be read without texts such as `unknown`
slips            whether a few are typing errors, for which the column is refused
unread_spellings whether text only looks like numbers or dates

`judging` tells whether numbers only name the rows, and holds the limits that several modules share.

The estimators of an ensemble then read the columns in a `scaling`: by itself each
(`column_scaling`), along `principal` axes, or in random `rotations`.
"""

from puicl_model.preprocessing.principal import PRINCIPAL
from puicl_model.preprocessing.reading import NOTHING, filled, is_missing, look, read_table
from puicl_model.preprocessing.rotations import ROTATED
from puicl_model.preprocessing.scaling import (
    RECODED,
    SCALINGS,
    TURNED,
    Recoded,
    Scaling,
    fit_scaling,
    recode,
    scaling_from_state,
)
from puicl_model.preprocessing.table import TablePreprocessor

__all__ = [
    "NOTHING",
    "PRINCIPAL",
    "RECODED",
    "ROTATED",
    "SCALINGS",
    "TURNED",
    "Recoded",
    "Scaling",
    "TablePreprocessor",
    "filled",
    "fit_scaling",
    "is_missing",
    "look",
    "read_table",
    "recode",
    "scaling_from_state",
]
