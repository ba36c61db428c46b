"""A folder of results is one run's at a time, and says what they are of."""

import errno
import fcntl
import hashlib
import json
import os

import pytest
from little_runs import figures, ones, plan_of, register

from pu_bench.data import Collection
from pu_bench.run import Plan, files, run_benchmark, runner
from pu_bench.run.store import only_run_in
from puicl_config import InputError


@pytest.mark.parametrize(
    "there", [["cells.jsonl"], ["results.csv", "details.csv"], ["details.csv"]]
)
def test_results_without_the_file_that_says_what_they_are_of_are_refused(
    there, collection, tmp_path
):
    plan = plan_of(collection, ["all_positive"], 1)
    first = run_benchmark(plan, tmp_path)
    for path in tmp_path.iterdir():
        if path.is_file() and path.name not in there:
            path.unlink()
    before = {name: (tmp_path / name).read_bytes() for name in there}
    with pytest.raises(InputError, match=f"holds {' and '.join(there)} without the run.json"):
        run_benchmark(plan, tmp_path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.name != ".lock"} == before
    assert figures(run_benchmark(plan, tmp_path / "other")) == figures(first)


def test_what_results_are_of_is_on_disk_before_the_first_cell_runs(
    monkeypatch, collection, tmp_path
):
    """So that a run that is killed within it goes on."""

    def looks(P, U, seed):
        assert (tmp_path / "run.json").is_file()
        return ones(U)

    register(monkeypatch, "looks", looks)
    assert not any(r["error"] for r in run_benchmark(plan_of(collection, ["looks"], 1), tmp_path))


def test_a_second_run_in_a_folder_is_refused(collection, tmp_path):
    with only_run_in(tmp_path), pytest.raises(InputError, match="another `puicl bench` is running"):
        run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)


@pytest.mark.parametrize("out", ["file", "file/below", "/proc/nobody"])
def test_a_folder_that_cannot_be_made_is_told(out, collection, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=f"--out {tmp_path / out} cannot be written: "):
        run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path / out)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.json", "{}", "there is no 'protocol' in it"),
        ("run.json", "[1]", "run.json is damaged"),
        ("environment.json", "{}", "it is no list of environments"),
        ("cells.jsonl", '{"task": "easy"}\n', "cells.jsonl: line 1 is no cell"),
        ("cells.jsonl", "[7]\n", "cells.jsonl: line 1 is no cell"),
    ],
)
def test_damaged_files_of_a_run_are_told(name, content, sentence, collection, tmp_path):
    plan = plan_of(collection, ["all_positive"], 1)
    run_benchmark(plan, tmp_path)
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=sentence):
        run_benchmark(plan, tmp_path)


def test_methods_on_other_rows_than_those_there_are_refused(collection, tmp_path, monkeypatch):
    run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)
    before = (tmp_path / "cells.jsonl").read_bytes()
    drawn = runner.split_pu
    monkeypatch.setattr(runner, "split_pu", lambda x, y, seed: drawn(x, y, seed + 1))
    assert len(run_benchmark(plan_of(collection, ["all_positive"], 1), tmp_path)) == 3
    with pytest.raises(InputError, match="on other rows of easy, repeat 0, than are drawn here"):
        run_benchmark(plan_of(collection, ["logistic"], 1), tmp_path)
    # Of any task, not of the first alone.
    monkeypatch.setattr(runner, "split_pu", lambda x, y, seed: drawn(x, y, seed + (len(x) == 120)))
    with pytest.raises(InputError, match="on other rows of mixed, repeat 0, than are drawn here"):
        run_benchmark(plan_of(collection, ["logistic"], 1), tmp_path)
    assert (tmp_path / "cells.jsonl").read_bytes() == before


@pytest.mark.parametrize("killed_at", ["results.csv", "details.csv", "run.json"])
def test_no_file_holds_figures_of_weights_that_run_json_does_not_name(
    killed_at, collection, untrained_weights, small_weights, tmp_path, monkeypatch
):
    """Wherever a run with new weights is killed: figures go before the name does."""

    def plan(weights, **more):
        return Plan(collection, ["puicl_single", "all_positive"], 1, model=weights, **more)

    other = untrained_weights(layers=1)
    run_benchmark(plan(small_weights), tmp_path)
    written = files.write_atomically

    def killed(path, content):
        if path.name == killed_at:
            raise KeyboardInterrupt
        written(path, content)

    with monkeypatch.context() as patch:
        for module in (files, runner):
            patch.setattr(module, "write_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            run_benchmark(plan(other, new_weights=True), tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    assert (
        facts["weights"]["puicl_single"] == hashlib.sha256(small_weights.read_bytes()).hexdigest()
    )
    rows = (tmp_path / "results.csv").read_text().splitlines()
    of_before = sum("puicl_single" in row for row in rows)
    assert of_before == (3 if killed_at == "results.csv" else 0)
    again = run_benchmark(plan(other, new_weights=True), tmp_path)
    assert figures(again) == figures(run_benchmark(plan(other), tmp_path / "afresh"))


def test_what_could_not_be_had_is_told_until_it_is(collection, tmp_path):
    def facts(tables, unavailable):
        few = Collection(collection.name, tables, unavailable)
        run_benchmark(plan_of(few, ["all_positive"], 1), tmp_path)
        return json.loads((tmp_path / "run.json").read_text())["unavailable"]

    easy, hard = ({name: collection.tables[name]} for name in ("easy", "hard"))
    assert facts(easy, {"hard": "no network"}) == {"hard": "no network"}
    assert facts(easy, {}) == {"hard": "no network"}  # which was not asked for
    assert facts(hard, {}) == {}
    assert facts(easy, {"hard": "no network"}) == {}  # whose results are there


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EIO])
def test_a_file_system_without_locks_is_told_once_and_run_on(
    number, collection, tmp_path, monkeypatch, capsys
):
    def no_locks(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    plan = plan_of(collection, ["all_positive"], 1)
    if number == errno.EIO:  # a disk that fails is no such file system, nor another run
        with pytest.raises(OSError, match="error"):
            run_benchmark(plan, tmp_path)
        return
    assert len(run_benchmark(plan, tmp_path)) == 3
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 3
    assert capsys.readouterr().err.count("is on a file system without locks") == 1


def test_a_lock_that_leads_elsewhere_is_refused_and_its_target_left_alone(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match=r"\.lock is a symbolic link"), only_run_in(tmp_path):
        pass
    assert (tmp_path / "precious").read_text() == "kept"
