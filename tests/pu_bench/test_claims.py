"""A folder of results is one run's at a time, and says what they are of."""

import errno
import fcntl
import os

import pytest
from little_runs import figures, ones, plan_of, register

from pu_bench.run import run_benchmark
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
