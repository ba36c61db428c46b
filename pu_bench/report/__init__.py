"""The report of a results folder: tables, tests and pictures, as Markdown and HTML."""

from pu_bench.report.results import Results, load_results
from pu_bench.report.write import write_report

__all__ = ["Results", "load_results", "write_report"]
