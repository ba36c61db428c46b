"""The report: statistics by hand, the paper's table as printed, and one page that stands alone."""

import html.parser
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pu_bench import METHODS, write_report
from pu_bench.data import TASKS
from pu_bench.describe import with_tables
from pu_bench.report.generated import markers
from pu_bench.report.readme import with_table
from pu_bench.report.results import load_results, published
from pu_bench.report.statistics import average_ranks
from pu_bench.report.tables import beside_the_paper, summary
from pu_bench.run.files import DETAILS, RESULTS, write_results
from pu_bench.run.metrics import METRICS
from pu_bench.run.runner import PROTOCOL
from puicl_config import InputError

BEGIN, END = markers("benchmark")
ROOT = Path(__file__).resolve().parents[2]
NAMES = {"puicl": "PUICL", "empu": "EMPU", "logistic": "logistic P vs U", "oracle": "Oracle"}
LEVEL = {"puicl": 0.9, "empu": 0.8, "logistic": 0.7, "oracle": 0.95}


@pytest.fixture
def results_folder(tmp_path) -> Path:
    return make_results(tmp_path)


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> Path:
    """The same folder with its report; not to be written to."""
    folder = make_results(tmp_path_factory.mktemp("reported"))
    write_report(folder)
    return folder


def make_results(folder: Path) -> Path:
    """Made-up cells: 8 tasks, 4 methods, 2 repeats; EMPU fails on one task, once elsewhere."""
    tasks = list(TASKS)[:8]
    records = []
    for place, task in enumerate(tasks):
        for method, level in LEVEL.items():
            for repeat in range(2):
                metrics = dict.fromkeys(METRICS, level - 0.02 * place + 0.01 * repeat)
                record = {"task": task, "method": method, "repeat": repeat, **metrics}
                record |= {"seconds": 0.5, "error": None, "collapsed": method == "logistic"}
                record |= {"n_labeled": 10, "n_unlabeled": 20, "n_features": 3, "pi": 0.5}
                record |= {"rows_seen": "0", "reliability": [[9, 20, 19.0, 10]]}
                if method == "empu" and (place == 0 or (place == 1 and repeat == 1)):
                    record |= dict.fromkeys((*METRICS, "collapsed", "reliability"))
                    record["error"] = "ValueError: <no> | luck"
                records.append(record)
    write_results(folder, records)
    methods = {
        name: {"title": title, "sees": ["labels"] if name == "oracle" else []}
        for name, title in NAMES.items()
    }
    run = {"protocol": PROTOCOL, "collection": "paper20", "methods": methods, "weights": {}}
    run["tables"] = {task: {"title": TASKS[task].title} for task in tasks}
    run["unavailable"] = {"rice": "no network"}
    (folder / "run.json").write_text(json.dumps(run))
    return folder


def test_the_papers_table_has_the_averages_that_the_paper_prints():
    table = published()
    assert sorted(set(table.task)) == sorted(TASKS)
    means = table.groupby("method")[["auc", "accuracy", "f1_negative"]].mean().round(3)
    assert means.auc.to_dict() == {
        "puicl": 0.882,
        "empu": 0.824,
        "vpu": 0.752,
        "ulsif": 0.841,
        "ted": 0.832,
    }
    assert means.accuracy.dropna().to_dict() == {
        "puicl": 0.802,
        "empu": 0.736,
        "vpu": 0.694,
        "ted": 0.786,
    }
    assert means.f1_negative.dropna().to_dict() == {
        "puicl": 0.758,
        "empu": 0.708,
        "vpu": 0.517,
        "ted": 0.759,
    }
    assert set(table.method) <= set(METHODS)  # the paper's methods go by these names


def test_means_and_counts_are_those_of_the_cells(results_folder):
    results = load_results(results_folder)
    assert results.methods == ["puicl", "logistic", "empu"]  # which failed on a task
    assert results.references == ["oracle"]
    mean, sd = results.mean_and_sd("puicl", "auc")
    assert mean == pytest.approx(0.9 - 0.02 * 3.5 + 0.005)
    assert sd == pytest.approx(0.01 / np.sqrt(2))
    assert results.count("empu") == {"cells": 16, "failed": 3, "collapsed": 0, "tasks": 7}
    assert results.count("logistic")["collapsed"] == 16
    auc = results.by_task("auc")
    assert np.isnan(auc.loc["diabetes", "empu"])
    # Means, ranks and tests count a failed cell as chance.
    levels = [0.5, (0.78 + 0.5) / 2, *(0.805 - 0.02 * place for place in range(2, 8))]
    assert results.mean_and_sd("empu", "auc")[0] == pytest.approx(np.mean(levels))
    assert results.judged_auc()["empu"].tolist() == pytest.approx(levels)
    assert average_ranks(results.judged_auc())["empu"] == pytest.approx((2 * 3 + 6 * 2) / 8)


def without(folder, unwanted):
    """The folder, as if the cells of which `unwanted` is true had never been run."""
    for name in (RESULTS, DETAILS):
        table = pd.read_csv(folder / name)
        table[~unwanted(table)].to_csv(folder / name, index=False)
    return load_results(folder)


def test_a_method_run_on_few_tasks_takes_no_part_and_heads_no_table(results_folder):
    tasks = list(TASKS)[:8]
    # EMPU's best tasks alone: the mean over them would be the best of all.
    table = pd.read_csv(results_folder / RESULTS)
    table.loc[table.method == "empu", "auc"] = 0.99
    table.to_csv(results_folder / RESULTS, index=False)
    results = without(results_folder, lambda t: (t.method == "empu") & ~t.task.isin(tasks[2:4]))
    assert results.methods == ["puicl", "logistic", "empu"]
    judged = results.judged_auc()
    assert list(judged) == ["puicl", "logistic"]
    assert len(judged) == 8
    write_report(results_folder)
    report = (results_folder / "report.md").read_text()
    assert "here without the methods EMPU." in report
    (row,) = re.findall(r"^\| EMPU \(2 of 8 tasks\) \|.*$", report, re.MULTILINE)
    assert "**" not in row
    assert "0.990" in row
    assert "EMPU (2 of 8 tasks)" in with_table(f"{BEGIN}\n{END}", results_folder)


def test_a_method_that_failed_on_a_task_heads_no_table_for_it(results_folder):
    table = pd.read_csv(results_folder / RESULTS)
    table.loc[(table.method == "empu") & table.error.isna(), "auc"] = 0.99
    table.to_csv(results_folder / RESULTS, index=False)
    assert load_results(results_folder).methods == ["puicl", "logistic", "empu"]
    write_report(results_folder)
    report = (results_folder / "report.md").read_text()
    lacks = r"\(7 of 8 tasks, 3 of 16 cells failed\)"
    (row,) = re.findall(rf"^\| EMPU {lacks} \|.*$", report, re.MULTILINE)
    assert float(row.split("|")[2].split()[0]) == round((6 * 0.99 + (0.99 + 0.5) / 2 + 0.5) / 8, 3)
    assert "**" not in row
    by_task = report.split("AUC by task, mean ±")[1]
    (row,) = re.findall(rf"^\| {TASKS[list(TASKS)[1]].title} \|.*$", by_task, re.MULTILINE)[:1]
    assert "**0.885**" in row  # of PUICL: EMPU failed once on this task
    (row,) = re.findall(rf"^\| {TASKS[list(TASKS)[2]].title} \|.*$", by_task, re.MULTILINE)[:1]
    assert "**0.990**" in row


def test_a_method_of_few_repeats_takes_no_part_and_the_rest_is_compared_on_all(results_folder):
    table = pd.concat(
        pd.read_csv(results_folder / RESULTS).assign(repeat=lambda t, more=more: t.repeat + more)
        for more in (0, 2)
    )
    table[["error"]] = np.nan
    table["auc"] = table["auc"].fillna(0.7)
    details = pd.concat(
        pd.read_csv(results_folder / DETAILS).assign(repeat=lambda t, more=more: t.repeat + more)
        for more in (0, 2)
    )
    table.to_csv(results_folder / RESULTS, index=False)
    details.to_csv(results_folder / DETAILS, index=False)
    results = without(results_folder, lambda t: (t.method == "logistic") & (t.repeat > 0))
    assert list(results.judged_auc()) == ["puicl", "empu"]
    assert results.judged_repeats == "4"
    write_report(results_folder)
    report = (results_folder / "report.md").read_text()
    assert "here without the methods logistic P vs U." in report
    assert "8 tasks (4 repeats of each)" in report
    half = without(results_folder, lambda t: (t.method == "empu") & (t.repeat > 1))
    assert list(half.judged_auc()) == ["puicl", "empu"]
    assert half.judged_repeats == "2"


@pytest.mark.parametrize(
    "unwanted",
    [
        lambda t: t.method != "oracle",  # which takes no part
        lambda t: t.repeat == (t.method == "puicl"),  # no split that all methods have
    ],
)
def test_where_nothing_can_be_compared_there_is_a_report_without_ranks(results_folder, unwanted):
    results = without(results_folder, unwanted)
    assert results.judged_auc().empty
    assert results.judged_repeats == "0"
    write_report(results_folder)
    assert "paired tests need two methods and 6 tasks" in (results_folder / "report.md").read_text()
    assert "| – |" in with_table(f"{BEGIN}\n{END}", results_folder)


def test_the_least_seconds_of_a_tasks_repeats_count(results_folder):
    table = pd.read_csv(results_folder / RESULTS)
    table.loc[table.repeat == 1, "seconds"] = 7.0  # beside other work
    table.to_csv(results_folder / RESULTS, index=False)
    assert load_results(results_folder).mean_and_sd("puicl", "seconds")[0] == 0.5


def test_methods_are_ranked_on_the_repeats_that_all_have(results_folder):
    table = pd.read_csv(results_folder / RESULTS)
    table.loc[(table.method == "puicl") & (table.repeat == 1), "auc"] = 0.1
    table.to_csv(results_folder / RESULTS, index=False)
    results = without(results_folder, lambda t: (t.method == "logistic") & (t.repeat == 1))
    judged = results.judged_auc()
    assert (judged.puicl > judged.logistic).all()  # in repeat 0, which is all there is of logistic
    assert judged.puicl.tolist() == pytest.approx([0.9 - 0.02 * place for place in range(8)])
    write_report(results_folder)
    assert "logistic P vs U (1 of 2 repeats)" in (results_folder / "report.md").read_text()


def test_a_run_of_which_every_cell_failed_has_a_report(results_folder):
    results = without(results_folder, lambda t: (t.method != "empu") | (t.task != "diabetes"))
    assert results.count("empu") == {"cells": 2, "failed": 2, "collapsed": 0, "tasks": 0}
    write_report(results_folder)
    assert "&lt;no&gt;" in (results_folder / "report.html").read_text()


def test_a_task_that_a_run_has_not_come_through_yet_counts_for_no_method(results_folder):
    last = list(TASKS)[7]
    results = without(results_folder, lambda t: (t.task == last) & (t.method != "puicl"))
    judged = results.judged_auc()
    assert list(judged) == ["puicl", "empu", "logistic"]
    assert len(judged) == 7
    assert last not in judged.index
    # A failure is none of these.
    assert judged.loc["diabetes", "empu"] == 0.5
    write_report(results_folder)
    report = (results_folder / "report.md").read_text()
    assert f"here without the tasks {TASKS[last].title}." in report
    assert "by AUC over 7 tasks" in report


def test_methods_without_a_task_in_common_are_not_compared(results_folder):
    tasks = list(TASKS)[:8]
    results = without(
        results_folder,
        lambda t: t.task.isin(tasks[:4]) == (t.method == "puicl") | (t.method == "oracle"),
    )
    assert results.judged_auc().shape[1] >= 1
    write_report(results_folder)
    assert "paired tests need two methods and 6 tasks" in (results_folder / "report.md").read_text()


class Page(html.parser.HTMLParser):
    """Tags in balance, what they refer to, and the text."""

    void = frozenset(("meta", "img", "br"))

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.ids, self.words = [], [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        facts = dict(attributes)
        self.links += [facts[key] for key in ("src", "href") if key in facts]
        self.ids.add(facts.get("id"))
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_the_page_is_whole_and_asks_the_network_for_nothing(reported):
    text = (reported / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.open == []
    assert len(page.links) > 10
    for link in page.links:
        assert link.startswith("data:image/png;base64,") or link[1:] in page.ids
    assert "http" not in re.sub(r"base64,[^\"]*", "", text)
    words = " ".join(page.words)
    assert "ValueError: <no> | luck" in words  # escaped in the source
    assert "Task rice could not be had: no network." in words
    assert 'name="viewport"' in text
    assert "@media print" in text


def test_the_markdown_says_the_same_and_links_its_pictures(reported):
    text = (reported / "report.md").read_text(encoding="utf-8")
    for name in re.findall(r"\((figures/[^)]*)\)", text):
        assert (reported / name).read_bytes().startswith(b"\x89PNG")
    assert text.count("](figures/") == 5
    elsewhere = np.mean([0.905 - 0.02 * place for place in (0, 1, 2, 3, 7)])  # no MONK's problem
    assert f"| PUICL | **0.835** ± 0.007 | {elsewhere:.3f} |" in text
    assert "¹ Without MONK-1, MONK-2 and MONK-3, whose classes are rules" in text
    # Ours, the paper's and the difference: 0.905 - 0.809.
    assert "| Diabetes | **0.905** | 0.809 | +0.096 | – | 0.789 | – |" in text
    assert "| Oracle * | 0.885 ± 0.007 |" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1


def test_the_report_of_the_same_results_is_the_same(results_folder, reported):
    write_report(results_folder)
    for name in ("report.md", "report.html", "figures/auc_by_task.png"):
        assert (results_folder / name).read_bytes() == (reported / name).read_bytes()


def cut(folder):
    whole = (folder / DETAILS).read_text().splitlines(keepends=True)
    (folder / DETAILS).write_text("".join(whole[:-1]))


def other_rows(folder):
    table = pd.read_csv(folder / DETAILS)
    table.loc[(table.method == "empu") & (table.task == "diabetes"), "rows_seen"] = 1
    table.to_csv(folder / DETAILS, index=False)


def renamed(folder, name, before, after):
    text = (folder / name).read_text()
    assert before in text
    (folder / name).write_text(text.replace(before, after))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda f: renamed(f, RESULTS, "auc,", "area,"), r"results\.csv lacks auc"),
        (lambda f: renamed(f, DETAILS, "rows_seen", "rows"), r"details\.csv lacks rows_seen"),
        (cut, "results.csv and details.csv hold different cells"),
        (other_rows, "methods saw different rows of diabetes, repeat 0"),
        (
            lambda f: (f / "run.json").write_text("{}"),
            "run.json is damaged: there is no 'protocol'",
        ),
        (lambda f: (f / "run.json").write_text("[1]"), "run.json is damaged"),
        (lambda f: renamed(f, "run.json", '"empu"', '"ampu"'), "says nothing of the method empu"),
        (lambda f: renamed(f, "run.json", '"diabetes"', '"d"'), "nothing of the task diabetes"),
        (lambda f: (f / "environment.json").write_text("{}"), "it is no list of environments"),
    ],
)
def test_damaged_results_are_refused_in_one_sentence(results_folder, damage, sentence):
    damage(results_folder)
    with pytest.raises(InputError, match=sentence):
        load_results(results_folder)


def test_the_readmes_table_comes_from_the_results(results_folder):
    readme = f"# Title\n\n{BEGIN}\nold\n{END}\n\nrest\n"
    text = with_table(readme, results_folder)
    assert "old" not in text
    assert text.endswith(f"{END}\n\nrest\n")
    # MONK's problems are the fifth to seventh of the eight tasks.
    elsewhere = np.mean([0.905 - 0.02 * place for place in (0, 1, 2, 3, 7)])
    row = f"| PUICL | 0.835 | {elsewhere:.3f} | 0.835 | 0.835 | 0.882 | 1.0 | 0.5 |"
    assert row in text
    assert "¹ Without MONK-1, MONK-2 and MONK-3, whose classes are rules" in text
    assert "The other 5 say more" in text
    assert with_table(text, results_folder) == text
    with pytest.raises(InputError, match="lacks the markers"):
        with_table("# Title\n", results_folder)


def test_the_committed_readme_holds_what_the_script_writes():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_table(readme, ROOT / "results" / "published") == readme


def test_the_tables_in_the_docs_are_those_of_the_code():
    text = (ROOT / "docs" / "benchmark.md").read_text(encoding="utf-8")
    assert with_tables(text) == text
    assert text.count("https://www.openml.org/d/") == 12
    assert all(f"| `{name}` |" in text for name in (*TASKS, *METHODS))


def test_the_spread_over_repeats_is_of_those_in_which_every_task_succeeded(results_folder):
    # EMPU failed in every repeat of one task: no mean over all tasks repeats.
    assert np.isnan(load_results(results_folder).mean_and_sd("empu", "accuracy")[1])


def test_the_mean_elsewhere_weighs_tasks_alike_whatever_their_repeats(results_folder):
    results = without(
        results_folder, lambda t: (t.task == "diabetes") & (t.method == "puicl") & (t.repeat == 1)
    )
    expected = np.mean([0.9, *(0.905 - 0.02 * place for place in (1, 2, 3, 7))])
    assert results.auc_elsewhere("puicl") == pytest.approx(expected)


def test_the_average_beside_the_paper_is_over_the_tasks_that_both_have(results_folder):
    average = beside_the_paper(load_results(results_folder), "auc").rows[-1]
    paper = published().query("method == 'empu'").set_index("task").auc
    # EMPU failed on the first of the eight tasks.
    assert average[5].text == f"{paper[list(TASKS)[1:8]].mean():.3f}"


def test_the_best_of_a_loss_is_the_least(results_folder):
    table = summary(load_results(results_folder))
    rows = {row[0].text.split(" (")[0]: row for row in table.rows}
    for name, best in (("AUC", "PUICL"), ("Brier", "logistic P vs U"), ("ECE", "logistic P vs U")):
        place = table.head.index(name)
        assert [method for method, row in rows.items() if row[place].bold] == [best]
