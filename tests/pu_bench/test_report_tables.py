"""The report's tables and the README's: who takes part, what cells hold, and what is bold."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from made_up_results import changed, make_results, without

from pu_bench import write_report
from pu_bench.data import TASKS
from pu_bench.report.generated import markers
from pu_bench.report.readme import with_table
from pu_bench.report.results import load_results, published
from pu_bench.report.tables import (
    _holm,
    _p,
    against_one,
    beside_the_paper,
    by_task,
    failures,
    pair_matrix,
    seconds,
    summary,
)
from pu_bench.run.files import RESULTS
from puicl_config import InputError

BEGIN, END = markers("benchmark")


def test_paired_tests_leave_out_the_tasks_that_the_prior_was_modelled_on(tmp_path, reported):
    folder = make_results(tmp_path, n_tasks=11)  # three of MONK, and Car
    table = pd.read_csv(folder / RESULTS)
    rules = table.task.isin(["monk1", "monk2", "monk3", "car"])
    table.loc[(table.method == "logistic") & ~rules, "auc"] = 0.99
    table.to_csv(folder / RESULTS, index=False)
    tests = against_one(load_results(folder), "puicl")
    assert tests.head[-2:] == ["wins / ties / losses¹", "p, Holm¹"]
    (row,) = (row for row in tests.rows if row[0].text == "logistic P vs U")
    assert [row[1].text, row[5].text] == ["4 / 0 / 7", "0 / 0 / 7"]
    # Seven differences of one sign: the exact p is 2 / 2^7, twice that after Holm's correction.
    assert row[6].text == f"{4 / 2**7:.2g}"
    assert row[6].bold
    assert not row[4].bold
    assert "¹ The same over the 7 tasks whose classes are no rules." in tests.caption
    assert "losses¹" not in (reported / "report.md").read_text()  # five tasks are too few


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


def test_a_method_is_not_best_on_a_task_by_the_cells_that_did_not_fail_there(results_folder):
    table = pd.read_csv(results_folder / RESULTS)
    table.loc[(table.method == "empu") & table.error.isna(), "accuracy"] = 0.99
    table.to_csv(results_folder / RESULTS, index=False)
    told = by_task(load_results(results_folder), "accuracy")
    place = list(told.head).index("EMPU")
    # It failed in both repeats of the first task and in one of the second.
    assert [row[place].text for row in told.rows] == ["–"] + ["0.990"] * 7
    assert [row[place].bold for row in told.rows] == [False] * 2 + [True] * 6


def test_the_average_beside_the_paper_is_over_the_tasks_that_both_have(results_folder):
    average = beside_the_paper(load_results(results_folder), "auc").rows[-1]
    paper = published().query("method == 'empu'").set_index("task").auc
    # EMPU failed on the first of the eight tasks.
    assert average[5].text == f"{paper[list(TASKS)[1:8]].mean():.3f}"


def test_the_best_of_a_loss_is_the_least(results_folder):
    table = summary(load_results(results_folder))
    rows = {row[0].text.split(" (")[0]: row for row in table.rows}
    losses = dict.fromkeys(("Brier", "ECE", "|π̂ - π|"), "logistic P vs U")
    for name, best in (("AUC", "PUICL"), *losses.items()):
        place = table.head.index(name)
        assert [method for method, row in rows.items() if row[place].bold] == [best]


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


def test_wins_are_those_of_the_method_named_and_its_median_and_p_stand_behind(results_folder):
    def auc(t):
        tasks = list(TASKS)
        place = t.task.map(tasks.index)
        lost = (t.method == "logistic") & (place == 7)
        return t.auc.where(~lost, 0.77)

    rows = against_one(changed(results_folder, auc=auc), "puicl").rows
    told = {row[0].text: [cell.text for cell in row[1:]] for row in rows}
    assert told["logistic P vs U"] == ["7 / 0 / 1", "+0.200", "0.016", "0.016"]
    assert told["EMPU"] == ["8 / 0 / 0", "+0.100", "0.0078", "0.016"]
    assert not rows[1][-1].text.startswith("<")
    assert all(row[-1].bold for row in rows)
    assert [_p(p) for p in (0.00099, 0.001, 0.0049)] == ["< 0.001", "0.001", "0.0049"]
    # Bold is what differs after the correction.
    corrected = [_holm(SimpleNamespace(p=0.03, holm=holm)) for holm in (0.049, 0.06)]
    assert [(cell.text, cell.bold) for cell in corrected] == [("0.049", True), ("0.06", False)]


def test_of_all_pairs_those_that_differ_are_bold(results_folder):
    results = changed(results_folder, auc=lambda t: t.auc.where(t.method != "logistic", 0.79))
    table = pair_matrix(results)
    cells = {
        (row[0].text, name): cell
        for row in table.rows
        for name, cell in zip(table.head[1:], row[1:], strict=True)
    }
    for (a, b), cell in cells.items():
        assert cell.text == cells[b, a].text
        assert (cell.text == "") == (a == b)
        assert cell.bold == (a != b and float(cell.text) < 0.05)
    assert {cell.bold for cell in cells.values()} == {True, False}


def test_a_tables_columns_are_what_their_heads_say(results_folder):
    table = summary(load_results(results_folder))
    rows = {row[0].text.split(" (")[0]: [cell.text for cell in row] for row in table.rows}
    count = [table.head.index(name) for name in ("failed", "collapsed", "cells")]
    assert [rows["EMPU"][place] for place in count] == ["3", "0", "16"]
    assert [rows["logistic P vs U"][place] for place in count] == ["0", "16", "16"]
    (cell,) = [row[1] for row in by_task(load_results(results_folder), "auc").rows[:1]]
    assert (cell.text, cell.spread) == ("0.905", "± 0.007")
    (row,) = failures(load_results(results_folder)).rows
    assert [cell.text for cell in row] == ["EMPU", "3", "diabetes, haberman",
                                           "ValueError: <no> | luck"]  # fmt: skip


def test_figures_that_print_alike_are_both_the_best(results_folder):
    results = changed(results_folder, auc=lambda t: np.where(t.method == "puicl", 0.90004, 0.9))
    bold = {row[0].text: row[1].bold for row in summary(results).rows}
    assert bold["PUICL"]
    assert bold["logistic P vs U"]


def test_beside_the_paper_figures_that_print_alike_are_a_tie_that_is_ours(results_folder):
    results = changed(results_folder, auc=lambda t: t.auc.where(t.task != "diabetes", 0.8088))
    (row,) = [row for row in beside_the_paper(results, "auc").rows if row[0].text == "Diabetes"]
    assert [(cell.text, cell.bold) for cell in row[1:4]] == [
        ("0.809", True),
        ("0.809", False),
        ("+0.000", False),
    ]


def test_times_have_three_digits_and_no_powers_of_ten():
    told = [seconds(value) for value in (0.00352, 1.857, 28.34, 123.4, 1234.5, np.nan)]
    assert told == ["0.00352", "1.86", "28.3", "123", "1234", "–"]
