"""A folder of results: which cells it holds, in which order, of which methods and machines."""

import json
import os
import warnings

import numpy as np
import pandas as pd
import pytest
from little_runs import CHEAP, ones, plan_of, register

from pu_bench import METHODS
from pu_bench.protocol import PUTask
from pu_bench.run import Cell, run_benchmark, run_cell
from pu_bench.run.files import DETAILS, RESULTS, read_environments, write_results
from pu_bench.run.store import CellLog
from puicl_config import InputError

SPLIT = PUTask(np.arange(8.0)[:, None], 2, np.array([1, 1, 1, 0, 0, 0]))


def test_a_whole_repeat_comes_before_the_next(collection):
    cells = list(plan_of(collection, CHEAP, 2).cells())
    assert len(cells) == 12
    assert [cell.repeat for cell in cells] == [0] * 6 + [1] * 6
    assert [cell.task for cell in cells[:6]] == ["easy", "easy", "hard", "hard", "mixed", "mixed"]


def test_the_files_of_results_do_not_depend_on_which_cell_ends_first(collection, tmp_path):
    records = run_benchmark(plan_of(collection, CHEAP, 2), tmp_path)
    written = [(tmp_path / name).read_bytes() for name in (RESULTS, DETAILS)]
    write_results(tmp_path, records[::-1])
    assert [(tmp_path / name).read_bytes() for name in (RESULTS, DETAILS)] == written
    table = pd.read_csv(tmp_path / RESULTS)
    keys = list(zip(table.task, table.method, table.repeat, strict=True))
    assert keys == sorted(keys)


def test_progress_counts_what_was_there_and_what_fails(collection, tmp_path, monkeypatch, capsys):
    def fails(P, U, seed):
        raise ValueError("no luck")

    register(monkeypatch, "fails", fails)
    run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)
    capsys.readouterr()
    run_benchmark(plan_of(collection, ["all_positive", "fails"], 1), tmp_path)
    assert "bench: 6/6 cells (100%), " in (said := capsys.readouterr().err)
    assert ", 3 failed, " in said


def test_a_method_that_is_run_now_is_no_longer_said_to_be_left_out(collection, tmp_path):
    why = {"logistic": "nothing here", "tabpfn": "nothing there"}
    run_benchmark(plan_of(collection, ["all_positive"], 1, skipped=why), tmp_path)
    run_benchmark(plan_of(collection, ["logistic"], 1), tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    assert facts["skipped"] == {"tabpfn": "nothing there"}
    assert list(facts["methods"]) == ["all_positive", "logistic"]


def test_environments_are_listed_as_they_came(collection, tmp_path):
    plan = plan_of(collection, ["all_positive"], 1)
    path = tmp_path / "environment.json"
    run_benchmark(plan, tmp_path)
    run_benchmark(plan, tmp_path)
    (here,) = read_environments(path)
    other = {**here, "cpu": "another"}
    path.write_text(json.dumps([here, other]))
    run_benchmark(plan, tmp_path)
    assert read_environments(path) == [here, other, here]
    path.write_text("[1]")
    with pytest.raises(InputError, match="it is no list of environments"):
        read_environments(path)


def test_no_file_holds_another_networks_figures_once_the_run_names_new_weights(
    collection, small_weights, tmp_path, monkeypatch
):
    plan = plan_of(collection, ["puicl_single", "all_positive"], 1, model=small_weights)
    run_benchmark(plan, tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    facts["weights"]["puicl_single"] = "0" * 64
    (tmp_path / "run.json").write_text(json.dumps(facts))

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pu_bench.run.runner.write_atomically", stopped)
    options = {"model": small_weights, "new_weights": True}
    with pytest.raises(KeyboardInterrupt):
        run_benchmark(plan_of(collection, ["puicl_single", "all_positive"], 1, **options), tmp_path)
    for name in (RESULTS, DETAILS):
        assert set(pd.read_csv(tmp_path / name).method) == {"all_positive"}


@pytest.mark.parametrize("line", ["5", "{}", '{"task": "t"}', "null", "[]"])
def test_a_line_of_the_log_that_is_no_cell_is_named(collection, tmp_path, line):
    plan = plan_of(collection, ["all_positive"], 1)
    run_benchmark(plan, tmp_path)
    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(InputError, match=r"cells\.jsonl: line 4 is no cell"):
        run_benchmark(plan, tmp_path)


def test_a_record_is_on_disk_when_it_is_said_to_be_kept_and_no_other_is_written_meanwhile(
    tmp_path, monkeypatch
):
    done, fsync = [], os.fsync

    def note(deed, file):
        done.append((deed, os.fstat(file).st_size))

    monkeypatch.setattr(os, "fsync", lambda file: note("synced", file) or fsync(file))
    monkeypatch.setattr(
        "pu_bench.run.store.take_lock", lambda file, wait: note(f"locked, {wait=}", file)
    )
    CellLog(tmp_path / "cells.jsonl").append({"n": 1})
    assert done == [("locked, wait=True", 0), ("synced", len('{"n":1}\n'))]


def test_a_long_error_is_cut_and_warnings_are_no_errors(monkeypatch):
    def fails(P, U, seed):
        raise ValueError("no luck " * 1000)

    def warns(P, U, seed):
        warnings.warn("mind this", stacklevel=1)
        return ones(U)

    register(monkeypatch, "fails", fails)
    register(monkeypatch, "warns", warns)
    error = run_cell(Cell("t", "fails", 0), METHODS["fails"](), SPLIT)["error"]
    assert (len(error), error[:20]) == (500, "ValueError: no luck ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_cell(Cell("t", "warns", 0), METHODS["warns"](), SPLIT)["error"] is None
