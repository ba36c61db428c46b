"""Pages that are committed hold what their results and the code give."""

from pathlib import Path

import pytest

from pu_bench import METHODS
from pu_bench.data import TASKS
from pu_bench.describe import with_tables
from pu_bench.report.blocks import markdown_rows
from pu_bench.report.readme import with_table
from pu_bench.report.results import load_results, read_cells
from pu_bench.report.tables import (
    beside_the_paper,
    by_task,
    summary,
)
from pu_bench.run.files import SWEEP_RESULTS
from pu_bench.sweeps.report import _numbers as sweep_numbers

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_readme_holds_what_the_script_writes():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme, ROOT / "results" / "published") == readme


def test_the_published_reports_tables_are_what_its_cells_give():
    pytest.importorskip("pandas", minversion="3", reason="older means differ in the last digit")
    folder = ROOT / "results" / "published"
    results = load_results(folder)
    tables = [summary(results)]
    for metric in ("auc", "accuracy", "f1_negative"):
        tables += [by_task(results, metric), beside_the_paper(results, metric)]
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert [table.caption for table in tables if markdown_rows(table) not in report] == []
    cells = read_cells(folder / SWEEP_RESULTS)
    sweeps = (folder / "sweeps.md").read_text(encoding="utf-8")
    for name, here in cells.groupby("sweep"):
        assert markdown_rows(sweep_numbers(here)) in sweeps, name


def test_the_tables_in_the_docs_are_those_of_the_code():
    text = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert with_tables(text) == text
    assert text.count("https://www.openml.org/d/") == 12
    assert all(f"| `{name}` |" in text for name in (*TASKS, *METHODS))
