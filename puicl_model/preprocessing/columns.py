"""Encoders of a table's column as one or more float64 columns without NaN.

There is one for numbers, one for categories and one for dates. An encoder is fitted to its column
on construction. From then on it encodes each cell independently (`transform`). Its `state` is plain
data, so that it can be saved as JSON.
"""

from puicl_model.preprocessing.category_column import CategoryColumn
from puicl_model.preprocessing.column import Column
from puicl_model.preprocessing.date_column import DateColumn
from puicl_model.preprocessing.number_column import NumberColumn

ENCODERS: dict[str, type[Column]] = {
    encoder.kind: encoder for encoder in (NumberColumn, DateColumn, CategoryColumn)
}
