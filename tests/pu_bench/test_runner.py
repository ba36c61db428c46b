"""The runner: same rows for all, no hidden labels for any, everything repeatable."""

import dataclasses
import html
import json
import re
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from little_runs import CHEAP, figures, ones, plan_of, register
from threadpoolctl import threadpool_info, threadpool_limits

from pu_bench import METHODS, Prediction, split_pu
from pu_bench.data import PAPER, Collection, load_collection
from pu_bench.protocol import PUTask
from pu_bench.run import Cell, make_method, run_benchmark, run_cell, run_only, usable_methods
from pu_bench.run.cells import rows_digest
from pu_bench.run.files import DETAILS

PUBLISHED = Path(__file__).resolve().parents[2] / "results" / "published"


def test_a_whole_repeat_is_run_before_the_next(collection):
    cells = list(plan_of(collection, CHEAP, repeats=2).cells())
    every = {(task, method) for task in collection.tables for method in CHEAP}
    for repeat, half in enumerate((cells[: len(every)], cells[len(every) :])):
        assert {cell.repeat for cell in half} == {repeat}
        assert {(cell.task, cell.method) for cell in half} == every


def test_every_registered_method_sees_identical_rows(monkeypatch, collection, tmp_path):
    handed: dict[tuple, set] = {}

    def spy(cls):
        def fit_predict(self, P, U, seed, **seen):
            handed.setdefault(cls.name, []).append(rows_digest(P, U))
            assert set(seen) == set(cls.sees)
            return ones(U)

        return fit_predict

    for cls in METHODS.values():
        monkeypatch.setattr(cls, "fit_predict", spy(cls))
        monkeypatch.setattr(cls, "__init__", lambda self: setattr(self, "model", None))
    records = run_benchmark(plan_of(collection, list(METHODS)), tmp_path)
    assert not any(record["error"] for record in records)
    first = handed[next(iter(METHODS))]
    assert len(first) == len(set(first)) == 6  # three tasks, two repeats, no split twice
    assert all(rows == first for rows in handed.values())
    by_cell = {(r["task"], r["repeat"]): r["rows_seen"] for r in records}
    assert len(by_cell) == 6
    assert all(r["rows_seen"] == by_cell[r["task"], r["repeat"]] for r in records)
    assert set(by_cell.values()) == set(first)
    # By which a report knows the references.
    known = json.loads((tmp_path / "run.json").read_text())["methods"]
    assert {name: set(facts["sees"]) for name, facts in known.items()} == {
        name: set(method.sees) for name, method in METHODS.items()
    }


# Networks take seconds to train; those that differ in their risk alone are left to the slow tests.
LONG = {"vpu", "upu", "pusb"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])
        for name, method in METHODS.items()
        if not method.sees
    ],
)
def test_permuted_hidden_labels_change_no_score(name, small_weights, monkeypatch):
    if name not in usable_methods(None, small_weights)[0]:
        pytest.skip(f"{name} cannot be run here")
    rng = np.random.default_rng(3)
    positive = np.arange(90) < 60
    split = split_pu(rng.normal(size=(90, 3)) + positive[:, np.newaxis], positive, seed=1)
    permuted = PUTask(split.x, split.n_labeled, rng.permutation(split.y))
    assert (permuted.y != split.y).any()
    answers = []
    original = METHODS[name].fit_predict

    def keep(self, *arguments, **seen):
        answers.append(original(self, *arguments, **seen))
        return answers[-1]

    monkeypatch.setattr(METHODS[name], "fit_predict", keep)
    cell = Cell("any", name, 0)
    records = [run_cell(cell, make_method(name, small_weights), one) for one in (split, permuted)]
    assert [record["error"] for record in records] == [None, None]
    np.testing.assert_array_equal(answers[0].score, answers[1].score)
    np.testing.assert_array_equal(answers[0].label, answers[1].label)
    assert answers[0].class_prior == answers[1].class_prior


def test_a_method_that_declares_it_is_given_the_labels(monkeypatch, collection):
    def cheat(P, U, seed, labels, class_prior):
        assert class_prior == labels.mean()
        return Prediction(labels.astype(float), labels, class_prior)

    register(monkeypatch, "cheat", cheat, sees={"labels", "class_prior"})
    record = run_only(Cell("hard", "cheat", 0), plan_of(collection, ["cheat"]))
    assert (record["auc"], record["accuracy"], record["pi_error"]) == (1.0, 1.0, 0.0)


def test_a_method_that_writes_into_what_it_is_lent_is_judged_by_the_true_classes(monkeypatch):
    def overwrite(P, U, seed, labels):
        labels[:], P[:], U[:] = 1, 0, 0
        return ones(U)

    register(monkeypatch, "overwrites", overwrite, sees={"labels"})
    split = PUTask(np.arange(8.0)[:, None], 2, np.array([1, 1, 0, 0, 0, 0]))
    record = run_cell(Cell("t", "overwrites", 0), METHODS["overwrites"](), split)
    assert (record["accuracy"], record["pi"]) == pytest.approx((1 / 3, 1 / 3))
    assert split.x[:, 0].tolist() == list(range(8))


def test_a_failing_method_is_recorded_and_the_run_goes_on(monkeypatch, collection, tmp_path):
    def fail(P, U, seed):
        raise RuntimeError("no\nluck")

    register(monkeypatch, "fails", fail)
    register(monkeypatch, "nan", lambda P, U, seed: Prediction(U[:, 0] * np.nan, U[:, 0] > 0, None))
    records = run_benchmark(plan_of(collection, ["fails", "nan", "logistic"], 1), tmp_path)
    errors = {name: [r["error"] for r in records if r["method"] == name] for name in METHODS}
    assert errors["fails"] == ["RuntimeError: no luck"] * 3
    assert all("not finite" in error for error in errors["nan"])
    assert errors["logistic"] == [None] * 3
    table = pd.read_csv(tmp_path / "results.csv").set_index("method")
    assert list(table.columns) == [
        *("task", "repeat", "auc", "accuracy", "f1_negative", "f1_positive"),
        *("balanced_accuracy", "brier", "ece", "pi_error", "seconds", "error"),
    ]
    assert table.loc["fails", "auc"].isna().all()
    assert table.loc["logistic", "auc"].notna().all()


def test_a_cell_alone_has_the_figures_it_has_in_a_run(collection, tmp_path):
    plan = plan_of(collection)
    records = run_benchmark(plan, tmp_path)
    for record in (records[0], records[-2]):
        cell = Cell(record["task"], record["method"], record["repeat"])
        assert figures([run_only(cell, plan)]) == figures([record])


def test_two_processes_give_the_figures_of_one(bench, tmp_path):
    common = ["--tasks", "monk1,wdbc", "--methods", "logistic,all_positive", "--quick"]
    code, out, _ = bench(*common, "--jobs", 2, "--out", tmp_path / "two")
    assert code == 0
    assert "12 cells, 0 failed, 6 with one score" in out
    assert bench(*common, "--jobs", 1, "--out", tmp_path / "one")[0] == 0
    one, two = (pd.read_csv(tmp_path / name / "results.csv") for name in ("one", "two"))
    pd.testing.assert_frame_equal(one.drop(columns="seconds"), two.drop(columns="seconds"))
    assert (tmp_path / "two" / "report.html").is_file()
    code, out, _ = bench("--only", "wdbc:logistic:2", "--out", tmp_path / "two")
    assert code == 0
    assert out.endswith("holds the same figures for wdbc:logistic:2\n")


def test_only_says_where_a_recorded_cell_has_other_figures(bench, tmp_path):
    common = ["--tasks", "monk1", "--methods", "logistic", "--repeats", 1, "--out", tmp_path]
    assert bench(*common, "--jobs", 1)[0] == 0
    cells = tmp_path / "cells.jsonl"
    record = json.loads(cells.read_text())
    cells.write_text(json.dumps({**record, "auc": 0.123}) + "\n")
    code, out, _ = bench("--only", "monk1:logistic:0", "--out", tmp_path)
    assert code == 1
    assert out.endswith("holds other figures for monk1:logistic:0: auc 0.123\n")
    environments = json.loads((tmp_path / "environment.json").read_text())
    environments[0] |= {"cpu": "another", "jobs": 7, "densratio": "0.4"}
    (tmp_path / "environment.json").write_text(json.dumps(environments))
    code, out, _ = bench("--only", "monk1:logistic:0", "--out", tmp_path)
    assert code == 1
    assert out.endswith("elsewhere, and some of its cells were run with cpu another\n")


def test_only_compares_with_a_published_folder_too_which_holds_six_digits(bench, tmp_path):
    common = ["--out", tmp_path, "--jobs", 1]
    methods = ["--tasks", "monk1", "--methods", "logistic,all_positive"]
    assert bench(*methods, *common, "--quick")[0] == 0
    (tmp_path / "cells.jsonl").unlink()
    for method in ("logistic", "all_positive"):
        code, out, _ = bench("--only", f"monk1:{method}:1", *common)
        assert (code, out.splitlines()[-1].partition(" holds ")[2]) == (
            0,
            f"the same figures for monk1:{method}:1",
        )
    assert not (tmp_path / "cells.jsonl").exists()
    text = (tmp_path / "results.csv").read_text(encoding="utf-8")
    auc = text.splitlines()[-1].split(",")[3]
    (tmp_path / "results.csv").write_text(text.replace(auc, "0.123456"), encoding="utf-8")
    code, out, _ = bench("--only", "monk1:logistic:2", *common)
    assert code == 1
    assert "holds other figures for monk1:logistic:2: auc 0.123456" in out
    code, out, _ = bench("--only", "monk1:extra_trees:0", *common)
    assert code == 0
    assert out.splitlines()[-1].endswith("holds no figures for monk1:extra_trees:0")


def test_without_weights_puicl_is_left_out_with_a_sentence_and_the_rest_runs(
    bench, little_tables, nothing_shipped, tmp_path, monkeypatch
):
    few = {name: METHODS[name] for name in (*CHEAP, "puicl")}
    monkeypatch.setattr("pu_bench.run.runner.METHODS", few)
    common = ["--data", little_tables, "--tasks", "easy", "--repeats", 1, "--jobs", 1]
    code, out, _ = bench(*common, "--out", tmp_path)
    assert code == 0
    assert "method puicl is left out: no weights named 'default' come" in out
    assert "Method puicl was not run: no weights named 'default' come" in (
        (tmp_path / "report.md").read_text()
    )


def test_columns_that_are_left_out_are_told_at_the_start_and_in_the_report(bench, tmp_path):
    rows = [f"{number},{number % 7},{'xy'[number % 2]}" for number in range(40)]
    rows[3] = "<0.1,3,y"
    (tmp_path / "lab.csv").write_text("\n".join(["price,size,target", *rows]))
    (tmp_path / "index.json").write_text('{"lab": {"positive": "x"}}')
    asked = ["--methods", "all_positive", "--repeats", 1, "--jobs", 1, "--out", tmp_path / "out"]
    code, out, _ = bench("--data", tmp_path, *asked)
    said = (
        "f table lab, 1 column is left out, categorical with more than 10 levels: price ('<0.1' "
        "makes text of its numbers)"
    )
    assert code == 0
    assert out.startswith(f"o{said}\n")
    assert f"O{said}." in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"O{html.escape(said)}." in page


def test_what_the_papers_tables_are_without_is_not_written_into_their_results(collection, tmp_path):
    table = dataclasses.replace(collection.tables["easy"], left_out={"a": None})
    for name, told in (("mine", True), (PAPER, False)):
        plan = plan_of(Collection(name, {"easy": table}, {}), ["all_positive"], 1)
        run_benchmark(plan, tmp_path / name)
        facts = json.loads((tmp_path / name / "run.json").read_text())["tables"]["easy"]
        assert ("left_out" in facts) is told


@pytest.mark.parametrize(
    ("arguments", "mentioned"),
    [
        (["--methods", "logistik"], "no method 'logistik'; there are "),
        (["--methods", ","], "--methods names nothing"),
        (["--tasks", "wdbc,iris"], "no task 'iris'; there are diabetes"),
        (["--data", "nowhere"], "--data nowhere is no folder"),
        (["--model", "nowhere.safetensors"], "no weights at nowhere.safetensors"),
        (["--only", "wdbc"], "'wdbc' is not of the form task:method:repeat"),
        (["--only", "wdbc:nobody:1"], "no method 'nobody'"),
        (["--report", "nowhere", "--out", "x"], "nowhere holds no results"),
        (["--sweep", "nothing"], "no sweep 'nothing'; there are pi"),
    ],
)
def test_bad_input_is_one_sentence(bench, tmp_path, monkeypatch, arguments, mentioned):
    monkeypatch.chdir(tmp_path)
    code, out, err = bench(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert mentioned in err
    assert list(tmp_path.iterdir()) == []


def test_every_cell_has_a_seed_of_its_own_and_methods_share_the_split():
    cells = [Cell(*names) for names in product("ab", "mn", (0, 1))]
    assert len({cell.method_seed for cell in cells}) == 8
    assert max(cell.method_seed for cell in cells) < 2**31
    assert len({cell.split_seed for cell in cells}) == 4


def test_the_published_splits_are_those_that_are_drawn_here():
    # Else a run that goes on from them, or is set beside them, is of other rows.
    rows = pd.read_csv(PUBLISHED / DETAILS).groupby(["task", "repeat"]).rows_seen.unique()
    for name, table in load_collection(None, ["monk1", "monk2", "wdbc"]).tables.items():
        for repeat in (0, 9):
            split = split_pu(table.x, table.positive, Cell(name, "any", repeat).split_seed)
            assert list(rows[name, repeat]) == [rows_digest(split.P, split.U)]
    assert Cell("wdbc", "logistic", 3).method_seed == 207990644


def test_a_record_counts_its_rows_and_the_seconds_that_pass(monkeypatch):
    def slow(P, U, seed):
        time.sleep(0.05)
        if len(P) > 2:
            raise ValueError("no luck")
        return ones(U)

    register(monkeypatch, "slow", slow)
    y = np.array([1, 1, 1, 0, 0, 0])
    for n_labeled, error in ((2, None), (3, "ValueError: no luck")):
        split = PUTask(np.zeros((6 + n_labeled, 4)), n_labeled, y)
        record = run_cell(Cell("t", "slow", 0), METHODS["slow"](), split)
        assert record["error"] == error
        assert 0.05 <= record["seconds"] < 30
        counts = [record[name] for name in ("n_labeled", "n_unlabeled", "n_features")]
        assert counts == [n_labeled, 6, 4]


def test_a_run_of_which_every_cell_fails_is_no_success(bench, little_tables, tmp_path, monkeypatch):
    def fails(P, U, seed):
        raise ValueError("no luck")

    register(monkeypatch, "fails", fails)
    common = ("--data", little_tables, "--methods", "fails", "--repeats", 1, "--jobs", 1)
    code, out, said = bench(*common, "--out", tmp_path)
    assert code == 2
    assert "3 cells, 3 failed" in out
    one = r"fails on \w+: ValueError: no luck"
    assert re.search(rf"error: every cell failed, such as {one} \(the report lists all", said)


def test_a_reference_is_given_the_true_share_of_positives(monkeypatch):
    given = {}

    def keep(P, U, seed, **seen):
        given.update(seen)
        return ones(U)

    register(monkeypatch, "told", keep, sees=frozenset({"class_prior"}))
    split = PUTask(np.arange(12.0)[:, None], 2, np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0]))
    record = run_cell(Cell("t", "told", 0), METHODS["told"](), split)
    assert given == {"class_prior": 0.3}
    assert record["pi"] == 0.3


def test_a_method_runs_in_one_thread(monkeypatch):
    seen = []

    def count(P, U, seed):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return ones(U)

    register(monkeypatch, "counts", count)
    split = PUTask(np.arange(8.0)[:, None], 2, np.array([1, 1, 1, 0, 0, 0]))
    with threadpool_limits(2):
        assert max(pool["num_threads"] for pool in threadpool_info()) == 2
        assert run_cell(Cell("t", "counts", 0), METHODS["counts"](), split)["error"] is None
    assert set(seen) == {1}


def test_a_method_draws_from_its_own_seed_and_not_from_the_splits(monkeypatch):
    drawn = []

    def keep(P, U, seed):
        drawn.append(seed)
        return ones(U)

    split = PUTask(np.arange(8.0)[:, None], 2, np.array([1, 1, 1, 0, 0, 0]))
    for name in ("one", "other"):
        register(monkeypatch, name, keep)
        run_cell(Cell("t", name, 3), METHODS[name](), split)
    assert drawn == [Cell("t", name, 3).method_seed for name in ("one", "other")]
    assert Cell("t", "one", 3).split_seed % 2**31 not in drawn
