"""The report: tables, tests and pictures out of a results folder, as Markdown and HTML."""

from pu_bench.report.results import Results, load_results
from pu_bench.report.write import write_report

__all__ = ["Results", "load_results", "write_report"]
