"""A method that is not ours takes part in the benchmark, as its docs print it."""

import csv
from pathlib import Path

import pytest

from pu_bench import METHODS, Method

DOCS = Path(__file__).parents[2] / "docs" / "benchmark.md"


def test_the_docs_own_method_runs_in_several_processes(run_afresh, little_tables, tmp_path):
    shown = DOCS.read_text(encoding="utf-8").split("**Your own method**")[1]
    code = shown.split("```python\n")[1].split("```")[0]
    script, out = tmp_path / "mine.py", tmp_path / "results"
    script.write_text(code, encoding="utf-8")
    asked = ["--methods", "centroid,logistic", "--data", little_tables, "--repeats", 1]
    run_afresh(script, "bench", *asked, "--jobs", 2, "--out", out)
    with (out / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "centroid"]
    assert {row["task"] for row in rows} == {"easy", "hard", "mixed"}
    assert not any(row["error"] for row in rows)
    assert next(float(row["auc"]) for row in rows if row["task"] == "easy") > 0.9
    assert "near the mean" in (out / "report.md").read_text(encoding="utf-8")


class Broken(Method):
    name, title, reference = "broken", "broken", "an example"

    def fit_predict(self, P, U, seed):
        return {}["missing"]


@pytest.fixture
def broken(monkeypatch):
    monkeypatch.setitem(METHODS, Broken.name, Broken)


def test_a_cell_that_fails_alone_shows_its_traceback(bench, broken, tmp_path):
    code, said, told = bench("--only", "monk1:broken:0", "--out", tmp_path)
    assert code == 0
    assert '"error": "KeyError: \'missing\'"' in said
    assert 'return {}["missing"]' in told


def test_a_method_without_what_tables_need_is_refused(bench, broken, monkeypatch, tmp_path):
    monkeypatch.delattr(Broken, "reference")
    code, _, told = bench("--methods", "broken", "--tasks", "monk1", "--out", tmp_path / "out")
    assert code == 2
    assert told == "error: method broken: its class has no reference\n"
