"""Tables on disk: read, scored, written, and told of on a page.

A folder of them is `puicl_model.files.folder`, apart from these because what spreads work over
processes takes its time to load.
"""

from puicl_model.files.csv_files import STREAM, Dialect
from puicl_model.files.formats import check_target, read_table, shown, write_table
from puicl_model.files.report_page import report_page
from puicl_model.files.scoring import Options, Scored, score_table, split_columns

__all__ = [
    "STREAM",
    "Dialect",
    "Options",
    "Scored",
    "check_target",
    "read_table",
    "report_page",
    "score_table",
    "shown",
    "split_columns",
    "write_table",
]
