"""Read, score and write tables on disk, and report on them in an HTML page.

Folders of tables are handled by `puicl_model.files.folder`, which is not imported here because the
tools for parallel work take time to load.
"""

from puicl_model.files.csv_files import STREAM, Dialect
from puicl_model.files.formats import check_target, read_table, shown, write_table
from puicl_model.files.new_rows import NewScores, score_new_rows
from puicl_model.files.report_page import report_page
from puicl_model.files.scoring import Options, Scored, score_table, split_columns

__all__ = [
    "STREAM",
    "Dialect",
    "NewScores",
    "Options",
    "Scored",
    "check_target",
    "read_table",
    "report_page",
    "score_new_rows",
    "score_table",
    "shown",
    "split_columns",
    "write_table",
]
