"""Results: what counts, who is compared with whom on what, and damage."""

import json

import numpy as np
import pandas as pd
import pytest
from made_up_results import without

from pu_bench import METHODS, write_report
from pu_bench.data import TASKS
from pu_bench.report.generated import markers
from pu_bench.report.readme import with_table
from pu_bench.report.results import load_results, published
from pu_bench.report.statistics import average_ranks
from pu_bench.report.tables import lacks_of
from pu_bench.run.files import DETAILS, RESULTS
from puicl_config import InputError

BEGIN, END = markers("benchmark")


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


def test_the_spread_over_repeats_is_of_those_in_which_every_task_succeeded(results_folder):
    # EMPU failed in every repeat of one task: no mean over all tasks repeats.
    assert np.isnan(load_results(results_folder).mean_and_sd("empu", "accuracy")[1])


def test_the_mean_elsewhere_weighs_tasks_alike_whatever_their_repeats(results_folder):
    results = without(
        results_folder, lambda t: (t.task == "diabetes") & (t.method == "puicl") & (t.repeat == 1)
    )
    expected = np.mean([0.9, *(0.905 - 0.02 * place for place in (1, 2, 3, 7))])
    assert results.auc_elsewhere("puicl") == pytest.approx(expected)
    # A failed cell is chance there, too.
    levels = [0.5, (0.78 + 0.5) / 2, *(0.805 - 0.02 * place for place in (2, 3, 7))]
    assert results.auc_elsewhere("empu") == pytest.approx(np.mean(levels))


def test_methods_are_in_the_order_of_means_that_weigh_tasks_alike_whatever_their_repeats(
    results_folder,
):
    first = next(iter(TASKS))
    table = pd.read_csv(results_folder / RESULTS)
    puicl, logistic = table.method == "puicl", table.method == "logistic"
    table.loc[puicl, "auc"] = np.where(table.task[puicl] == first, 0.1, 0.9)
    table.loc[logistic, "auc"] = 0.75
    table.to_csv(results_folder / RESULTS, index=False)
    results = without(
        results_folder, lambda t: (t.method == "puicl") & (t.task != first) & (t.repeat == 1)
    )
    assert results.mean_and_sd("puicl", "auc")[0] == pytest.approx((0.1 + 7 * 0.9) / 8)
    assert results.methods == ["puicl", "logistic", "empu"]  # the last failed on a task


def test_failed_cells_are_counted_in_whole_numbers_where_a_task_is_not_there_yet(results_folder):
    last = list(TASKS)[7]
    results = without(results_folder, lambda t: (t.task == last) & (t.method != "puicl"))
    assert lacks_of(results, "empu") == " (6 of 8 tasks, 3 of 14 cells failed)"


def test_the_seconds_until_a_failure_are_not_a_tasks_time(results_folder):
    table = pd.read_csv(results_folder / RESULTS)
    table.loc[table.error.notna(), "seconds"] = 0.001
    table.to_csv(results_folder / RESULTS, index=False)
    assert load_results(results_folder).mean_and_sd("empu", "seconds")[0] == 0.5


def test_tables_may_be_named_by_numbers(results_folder):
    run = json.loads((results_folder / "run.json").read_text())
    names = {task: f"{2010 + place}" for place, task in enumerate(run["tables"])}
    for name in (RESULTS, DETAILS):
        table = pd.read_csv(results_folder / name)
        table.assign(task=table.task.map(names)).to_csv(results_folder / name, index=False)
    run["collection"] = "years"
    run["tables"] = {names[task]: table for task, table in run["tables"].items()}
    (results_folder / "run.json").write_text(json.dumps(run))
    assert load_results(results_folder).tasks == list(names.values())


def test_failures_that_leave_no_task_out_count_as_chance_in_the_order_of_methods(results_folder):
    table = pd.read_csv(results_folder / RESULTS)
    mine = table.method == "logistic"
    table.loc[mine, "auc"] = 0.99
    table.loc[mine & (table.repeat == 1), ["auc", "error"]] = [np.nan, "ValueError: no luck"]
    table.to_csv(results_folder / RESULTS, index=False)
    assert load_results(results_folder).methods == ["puicl", "logistic", "empu"]
