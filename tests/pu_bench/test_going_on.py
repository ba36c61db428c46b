"""What a run finished is kept: killed, stopped, widened or published, it goes on."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from little_runs import CHEAP, figures, ones, plan_of, register

from pu_bench import Prediction
from pu_bench.data import load_collection
from pu_bench.run import run_benchmark
from pu_bench.run.files import FACTS, read_facts, read_results, write_results
from pu_bench.run.metrics import METRICS
from pu_bench.run.store import CellLog
from puicl_config import InputError

ROOT = Path(__file__).resolve().parents[2]


def test_failed_cells_are_run_again_only_when_asked_to(monkeypatch, collection, tmp_path):
    calls = []

    def flaky(P, U, seed):
        calls.append(seed)
        if len(calls) == 1:
            raise RuntimeError("once")
        return ones(U)

    register(monkeypatch, "flaky", flaky)
    plan = plan_of(collection, ["flaky"], 1)
    assert sum(r["error"] is not None for r in run_benchmark(plan, tmp_path)) == 1
    assert sum(r["error"] is not None for r in run_benchmark(plan, tmp_path)) == 1
    assert len(calls) == 3
    again = plan_of(collection, ["flaky"], 1, retry_failed=True)
    assert not any(r["error"] for r in run_benchmark(again, tmp_path))
    assert len(calls) == 4
    assert calls[3] == calls[0]


def test_more_methods_tasks_and_repeats_leave_old_cells_alone(collection, tmp_path):
    before = run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)
    after = run_benchmark(plan_of(collection, CHEAP, 2), tmp_path)
    kept = [r for r in after if r["method"] == "all_positive" and r["repeat"] == 0]
    assert kept == before  # with their times: not run again
    assert len(after) == 12
    run = json.loads((tmp_path / "run.json").read_text())
    assert list(run["methods"]) == ["all_positive", "logistic"]
    environment = json.loads((tmp_path / "environment.json").read_text())
    assert environment[-1]["numpy"] == np.__version__


@pytest.mark.parametrize("name", ["run.json", "environment.json", "results.csv"])
def test_a_damaged_file_of_results_is_one_sentence(name, collection, tmp_path):
    plan = plan_of(collection, ["all_positive"], 1)
    run_benchmark(plan, tmp_path)
    (tmp_path / "cells.jsonl").unlink()
    text = (tmp_path / name).read_text().replace("0.5", "half")
    (tmp_path / name).write_text(text if name == "results.csv" else text[: len(text) // 2])
    with pytest.raises(InputError, match=f"{name}.* is damaged"):
        run_benchmark(plan, tmp_path)


@pytest.mark.parametrize(("name", "kept"), [("results.csv", 5), ("details.csv", 9)])
def test_a_table_of_results_whose_last_line_was_cut_off_is_damaged(
    name, kept, collection, tmp_path
):
    plan = plan_of(collection, ["all_positive"], 1)
    run_benchmark(plan, tmp_path)
    (tmp_path / "cells.jsonl").unlink()
    *whole, last = (tmp_path / name).read_text().splitlines()
    (tmp_path / name).write_text("\n".join([*whole, ",".join(last.split(",")[:kept])]))
    with pytest.raises(InputError, match=r"results\.csv or details\.csv is damaged: "):
        run_benchmark(plan, tmp_path)


@pytest.mark.parametrize("text", ["5", "[]", "null", "{}"])
def test_a_file_of_facts_that_holds_none_is_damaged(text, tmp_path):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(InputError, match=r"run\.json is damaged: there is no '.*' in it"):
        read_facts(tmp_path / "run.json", FACTS)


def test_results_judged_in_another_way_are_refused(collection, tmp_path):
    plan = plan_of(collection, ["all_positive"], 1)
    run_benchmark(plan, tmp_path)
    run = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**run, "protocol": 1}))
    cells = tmp_path / "cells.jsonl"
    before = cells.read_bytes()
    with pytest.raises(InputError, match="of protocol 1, not 2"):
        run_benchmark(plan, tmp_path)
    assert cells.read_bytes() == before
    cells.unlink()  # as in a published folder, which a refusal leaves as it is
    with pytest.raises(InputError, match="of protocol 1, not 2"):
        run_benchmark(plan, tmp_path)
    assert not cells.exists()


def test_a_line_that_a_kill_cut_off_is_no_record_and_harms_no_other(tmp_path):
    log = CellLog(tmp_path / "cells.jsonl")
    log.append({"n": 1})
    with log.path.open("ab") as file:
        file.write(b'{"n": 2, "x')
    assert list(log.records(lambda r: r["n"])) == [1]
    log.append({"n": 3})
    assert list(log.records(lambda r: r["n"])) == [1, 3]


SLOW = """
import sys, time
from pathlib import Path
from pu_bench import METHODS, Method, Prediction
from pu_bench.data import load_collection
from pu_bench.run import Plan, run_benchmark

class Slow(Method):
    name, title, reference = "slow", "slow", "a test"
    def fit_predict(self, P, U, seed):
        time.sleep(0.15)
        return Prediction(U[:, 0] + seed % 97, (U[:, 0] > 0).astype(int), 0.5)

METHODS["slow"] = Slow
run_benchmark(Plan(load_collection(Path(sys.argv[1])), ["slow"], 4), Path(sys.argv[2]))
"""


def test_a_run_killed_with_minus_nine_goes_on_where_it_stood(
    little_tables, collection, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    running = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(little_tables), str(out)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    cells = out / "cells.jsonl"
    deadline = time.monotonic() + 300
    while not (cells.exists() and cells.read_bytes().count(b"\n") >= 4):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    finished = cells.read_bytes().splitlines()
    assert 4 <= len(finished) < 12
    calls = []

    def same(P, U, seed):
        calls.append(seed)
        return Prediction(U[:, 0] + seed % 97, (U[:, 0] > 0).astype(int), 0.5)

    register(monkeypatch, "slow", same)
    records = run_benchmark(plan_of(collection, ["slow"], 4), out)
    assert len(records) == 12
    assert len(calls) == 12 - len(finished)
    assert cells.read_bytes().splitlines()[: len(finished)] == finished
    assert len(pd.read_csv(out / "results.csv")) == 12
    whole = run_benchmark(plan_of(collection, ["slow"], 4), tmp_path / "never killed")
    assert figures(whole) == figures(records)


def test_results_of_another_collection_are_refused(collection, tmp_path):
    run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)
    other = load_collection(None, ["wdbc"])
    with pytest.raises(InputError, match="give another --out"):
        run_benchmark(plan_of(other, ["all_positive"], 1), tmp_path)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("easy", {"positive": "no"}),
        ("mixed", {"positive": "1"}),  # whose codes are numbers then
    ],
)
def test_results_with_another_positive_class_or_other_categories_are_refused(
    little_tables, collection, tmp_path, name, facts
):
    run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path / "out")
    before = (tmp_path / "out" / "run.json").read_bytes()
    # The same files in a folder of the same name: canonical tables are before classes and codes.
    other = shutil.copytree(little_tables, tmp_path / little_tables.name)
    index = json.loads((other / "index.json").read_text())
    (other / "index.json").write_text(json.dumps({**index, name: facts}))
    changed = load_collection(other)
    assert changed.name == collection.name
    assert changed.tables[name].digest == collection.tables[name].digest
    with pytest.raises(InputError, match=f"results on {name} with another positive class, or oth"):
        run_benchmark(plan_of(changed, ["logistic"], 1), tmp_path / "out")
    assert (tmp_path / "out" / "run.json").read_bytes() == before
    # A title is no part of it, nor are tables that another plan leaves alone.
    hard = {**index["hard"], "title": "H"}
    (other / "index.json").write_text(json.dumps({**index, "hard": hard}))
    titled = load_collection(other, ["hard"])
    assert len(run_benchmark(plan_of(titled, ["all_positive"], 1), tmp_path / "out")) == 1
    tables = json.loads((tmp_path / "out" / "run.json").read_text())["tables"]
    assert {key: table["task_sha256"] for key, table in tables.items()} == {
        key: table.task_digest for key, table in collection.tables.items()
    }


def test_the_published_run_which_is_of_an_older_version_is_gone_on_from_as_it_is(tmp_path):
    for name in ("run.json", "results.csv", "details.csv"):
        shutil.copy(ROOT / "results" / "published" / name, tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    for table in facts["tables"].values():
        table.pop("task_sha256", None)
    (tmp_path / "run.json").write_text(json.dumps(facts))
    run_benchmark(plan_of(load_collection(None, ["wdbc"]), ["logistic"]), tmp_path)
    for name in ("results.csv", "details.csv"):  # with the times: no cell was run again
        before = (ROOT / "results" / "published" / name).read_bytes()
        assert (tmp_path / name).read_bytes() == before
    tables = json.loads((tmp_path / "run.json").read_text())["tables"]
    # From now on this table's is known, and another one would be refused.
    assert [name for name, table in tables.items() if "task_sha256" in table] == ["wdbc"]
    assert set(tables) == set(facts["tables"])
    # Where that is not known, another table is told by its cells.
    facts["tables"]["wdbc"]["sha256"] = "0" * 64
    (tmp_path / "run.json").write_text(json.dumps(facts))
    with pytest.raises(InputError, match="holds results on another wdbc table; give another --out"):
        run_benchmark(plan_of(load_collection(None, ["wdbc"]), ["logistic"]), tmp_path)


def test_a_published_folder_goes_on_without_its_cells(collection, tmp_path):
    first = run_benchmark(plan_of(collection, ["all_positive", "logistic"], 1), tmp_path)
    published = {name: (tmp_path / name).read_bytes() for name in ("results.csv", "details.csv")}
    (tmp_path / "cells.jsonl").unlink()
    again = run_benchmark(plan_of(collection, ["all_positive", "logistic"], 1), tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in published} == published
    assert [r["rows_seen"] for r in again] == [r["rows_seen"] for r in first]
    assert [r["auc"] for r in again] == [float(f"{r['auc']:.6g}") for r in first]
    assert [r["collapsed"] for r in again] == [r["collapsed"] for r in first]
    longer = run_benchmark(plan_of(collection, ["all_positive"], 2), tmp_path)
    assert len(longer) == 2 * len(first) // 2
    (tmp_path / "cells.jsonl").unlink()
    details = (tmp_path / "details.csv").read_text().splitlines(keepends=True)
    (tmp_path / "details.csv").write_text("".join(details[:-1]))
    with pytest.raises(InputError, match="hold different cells"):
        run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)


def test_a_stopped_run_keeps_what_is_finished_and_says_how_to_go_on(
    bench, little_tables, tmp_path, monkeypatch
):
    calls = []

    def stopped(P, U, seed):
        calls.append(seed)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return ones(U)

    register(monkeypatch, "stopped", stopped)
    common = ["--data", little_tables, "--methods", "stopped", "--repeats", 2, "--jobs", 1]
    code, _, err = bench(*common, "--out", tmp_path)
    assert code == 130
    assert f"stopped; the same command goes on from what {tmp_path} holds" in err
    assert len(pd.read_csv(tmp_path / "results.csv")) == 2
    assert bench(*common, "--out", tmp_path)[0] == 0
    assert len(calls) == 3 + 4
    assert len(pd.read_csv(tmp_path / "results.csv")) == 6


def test_a_run_says_how_many_cells_it_computed_and_how_many_were_there(
    bench, little_tables, tmp_path, monkeypatch
):
    common = ["--data", little_tables, "--methods", "mine", "--jobs", 1, "--out", tmp_path]
    register(monkeypatch, "mine", lambda P, U, seed: ones(U))
    assert "; 3 computed now, 0 were there already, " in bench(*common, "--repeats", 1)[1]
    register(monkeypatch, "mine", lambda P, U, seed: Prediction(U[:, 0], U[:, 0] > 0, None))
    for repeats, said in ((1, "0 computed now, 3"), (2, "3 computed now, 3")):
        _, out, _ = bench(*common, "--repeats", repeats)
        assert f"; {said} were there already, " in out
        assert " of computing in all; " in out


def test_results_come_back_as_they_were_to_six_digits(tmp_path):
    record = {"task": "t", "method": "m", "repeat": 0, **dict.fromkeys(METRICS, 0.123456789)}
    record |= {"seconds": 12.5, "error": None, "collapsed": False, "n_labeled": 5}
    record |= {"n_unlabeled": 10, "n_features": 3, "pi": 0.5, "rows_seen": "12"}
    record |= {"reliability": [[9, 10, 9.5, 5]], "brier": None}
    failed = {**record, "repeat": 1, **dict.fromkeys((*METRICS, "collapsed", "reliability"))}
    write_results(tmp_path, [failed | {"error": "ValueError: 1"}, record | {"collapsed": True}])
    first, second = read_results(tmp_path)
    rounded = dict.fromkeys(set(METRICS) - {"brier"}, 0.123457)
    assert first == {**record, **rounded, "collapsed": True}
    assert second == {**failed, "error": "ValueError: 1"}
    write_results(tmp_path, [record])
    assert read_results(tmp_path) == [{**record, **rounded}]
    assert pd.read_csv(tmp_path / "results.csv", dtype=str).auc[0] == "0.123457"
