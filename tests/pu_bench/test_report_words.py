"""Small things that a report says or leaves out, by what is there."""

import json
import re

import pandas as pd
import pytest
from made_up_results import make_results, without

from pu_bench import write_report
from pu_bench.data import TASKS
from pu_bench.report import figures, figures_probability
from pu_bench.report.card import benchmark
from pu_bench.report.figures_probability import reliability
from pu_bench.report.generated import markers, renew_from_results, renewed
from pu_bench.report.readme import with_table
from pu_bench.report.results import load_results
from pu_bench.report.style import COLOURS, colour_of
from pu_bench.report.tables import failures, summary
from pu_bench.run.files import DETAILS, ENVIRONMENT, RESULTS
from puicl_config import InputError

BEGIN, END = markers("benchmark")


@pytest.fixture
def unrendered(monkeypatch):
    """Pictures are made, and not written out, which takes most of a report's time."""
    for module in (figures, figures_probability):
        monkeypatch.setattr(module, "png_of", lambda figure: b"")


def rewrite(folder, name, **columns):
    """A table of the folder with other columns, each a function of the table."""
    table = pd.read_csv(folder / name)
    table.assign(**columns).to_csv(folder / name, index=False)


def edit(folder, **facts):
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, **facts}))


@pytest.mark.usefixtures("unrendered")
def test_of_a_run_without_failures_the_report_says_so(tmp_path):
    folder = make_results(tmp_path, n_tasks=6)
    without(folder, lambda t: t.method == "empu")
    (folder / ENVIRONMENT).write_text(json.dumps([{"python": "3.11", "tabpfn": None, "jobs": 2}]))
    assert failures(load_results(folder)) is None
    write_report(folder)
    report = (folder / "report.md").read_text()
    assert "\n\n## Failures\n\nNo cell failed.\n\n" in report
    assert "\n\npython 3.11, jobs 2.\n" in report
    # Six tasks are the fewest that can be told apart.
    assert "by AUC over 6 tasks" in report


@pytest.mark.usefixtures("unrendered")
def test_tests_are_of_puicl_though_another_method_is_better(results_folder):
    rewrite(results_folder, RESULTS, auc=lambda t: t.auc.where(t.method != "logistic", 0.99))
    assert load_results(results_folder).methods[0] == "logistic"
    write_report(results_folder)
    report = (results_folder / "report.md").read_text()
    assert "PUICL against each other method by AUC" in report


@pytest.mark.usefixtures("unrendered")
def test_only_the_papers_tasks_stand_beside_the_paper(results_folder):
    edit(results_folder, collection="mine")
    write_report(results_folder)
    report = (results_folder / "report.md").read_text()
    assert "Beside the paper" not in report
    assert "¹" not in report
    table = with_table(f"{BEGIN}\n{END}", results_folder)
    (row,) = re.findall(r"^\| PUICL \|.*$", table, re.MULTILINE)
    assert [cell.strip() for cell in row.split("|")[5:7]] == ["–", "1.0"]


@pytest.mark.usefixtures("unrendered")
def test_heads_stand_above_their_columns_and_references_below_a_line(results_folder):
    results = load_results(results_folder)
    table = summary(results)
    assert table.head[:4] == ["method", "AUC", "AUC¹", "accuracy"]
    assert {len(row) for row in table.rows} == {len(table.head)}
    write_report(results_folder)
    page = (results_folder / "report.html").read_text()
    (row,) = re.findall(r'<tr class="rule"><td>([^<]*)</td>', page.split("Summary</h2>")[1])[:1]
    assert row == "Oracle *"
    assert all(" " not in anchor for anchor in re.findall(r'(?:href="#|id=")([^"]*)"', page))


def test_tasks_are_in_the_papers_order_whatever_order_they_were_run_in(results_folder):
    run = json.loads((results_folder / "run.json").read_text())
    edit(results_folder, tables=dict(reversed(run["tables"].items())))
    assert load_results(results_folder).tasks == list(TASKS)[:8]


def test_numbers_of_repeats_that_differ_are_told_as_a_range(results_folder):
    results = without(results_folder, lambda t: (t.task == "diabetes") & (t.repeat == 1))
    assert results.judged_repeats == "1 to 2"


def test_a_cell_that_stands_there_twice_is_refused(results_folder):
    for name in (RESULTS, DETAILS):
        text = (results_folder / name).read_text()
        (results_folder / name).write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(InputError, match="not unique"):
        load_results(results_folder)


def test_a_table_may_be_called_what_stands_for_nothing_elsewhere(results_folder):
    for name in (RESULTS, DETAILS):
        rewrite(results_folder, name, task=lambda t: t.task.where(t.task != "diabetes", "NA"))
    run = json.loads((results_folder / "run.json").read_text())
    edit(results_folder, collection="mine", tables={"NA": {"title": "N"}, **run["tables"]})
    assert load_results(results_folder).tasks[0] == "NA"


def test_every_bin_of_a_cell_counts(results_folder):
    bins = "[[0,5,1.0,0],[9,15,14.0,15]]"
    rewrite(results_folder, DETAILS, reliability=lambda t: bins)
    told = reliability(load_results(results_folder), "puicl")
    assert told[0].tolist() == [80, 16, 0]
    assert told[9].tolist() == [240, 224, 240]


def test_frames_of_the_calibration_without_a_method_are_not_drawn(results_folder, monkeypatch):
    kept = []
    monkeypatch.setattr(figures_probability, "png_of", lambda figure: kept.append(figure) or b"")
    figures_probability.calibration(load_results(results_folder))
    assert [axes.get_visible() for axes in kept[0].axes] == [True] * 4 + [False] * 2


def test_of_more_methods_than_colours_the_colours_come_again():
    names = [f"m{number}" for number in range(8)]
    colours = [colour_of(name, ["puicl", *names]) for name in names]
    assert colours[:2] == colours[6:]
    assert len(set(colours)) == 6
    assert not set(colours) & set(COLOURS.values())


def test_the_readme_says_what_its_marks_mean_where_there_are_any(results_folder):
    marked = "Methods with * are given hidden labels"
    assert marked in with_table(f"{BEGIN}\n{END}", results_folder)
    without(results_folder, lambda t: t.method == "oracle")
    assert marked not in with_table(f"{BEGIN}\n{END}", results_folder)
    (results_folder / RESULTS).unlink()
    text = with_table(f"{BEGIN}\n{END}", results_folder)
    assert "The full run of this benchmark has not been made yet." in text


def test_a_card_tells_nothing_of_results_without_its_weights(results_folder):
    without(results_folder, lambda t: t.method == "puicl")
    assert benchmark(results_folder) == "Not measured for these weights yet."


def test_a_block_without_an_end_is_refused():
    with pytest.raises(InputError, match="lacks the markers of its block benchmark"):
        renewed(f"# Title\n{BEGIN}\n", {"benchmark": "new"})


def test_a_document_is_renewed_or_only_checked(tmp_path, monkeypatch):
    document = tmp_path / "page.md"

    def run(text, *options):
        """What the script makes of the document, and its exit code, if it exits."""
        document.write_text(text)
        monkeypatch.setattr("sys.argv", ["page", str(document), *options])
        try:
            renew_from_results("About.", tmp_path / "none.md", lambda *_: "new")
        except SystemExit as stop:
            return document.read_text(), int(stop.code)
        return document.read_text(), None

    assert run("old") == ("new", None)
    assert run("old", "--check") == ("old", 1)
    assert run("new", "--check") == ("new", 0)
