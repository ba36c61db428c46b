"""What `puicl bench` makes of its options, and how it ends when the system stops it."""

import os
import signal

import pytest
from little_runs import ones, register

import pu_bench
from pu_bench.command import SWEEP_METHODS, parse_cell
from pu_bench.run import Cell, usable_methods
from pu_bench.sweeps import SWEEPS
from puicl_config import InputError


@pytest.mark.parametrize("sweep", [(), ("--sweep", "pi")])
@pytest.mark.parametrize(
    ("flags", "meant"),
    [
        ((), (False, False)),
        (("--retry-failed",), (True, False)),
        (("--new-weights",), (False, True)),
    ],
)
def test_failed_cells_and_other_weights_are_two_flags(bench, monkeypatch, sweep, flags, meant):
    asked = []
    for name in ("bench_command", "sweep_command"):
        monkeypatch.setattr(pu_bench, name, lambda *_, **again: asked.append(again))
    assert bench(*sweep, *flags)[0] == 0
    assert asked == [dict(zip(("retry_failed", "new_weights"), meant, strict=True))]


def test_a_stop_by_the_system_is_told_like_one_by_hand(bench, little_tables, tmp_path, monkeypatch):
    def stopped(P, U, seed):
        os.kill(os.getpid(), signal.SIGTERM)
        return ones(U)

    register(monkeypatch, "stopped", stopped)
    before = signal.getsignal(signal.SIGTERM)
    try:
        common = ("--data", little_tables, "--methods", "stopped", "--jobs", 1, "--out", tmp_path)
        code, _, said = bench(*common)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert code == 143
    assert f"stopped; the same command goes on from what {tmp_path} holds" in said


def test_a_number_of_a_repeat_is_written_in_digits(bench):
    code, _, said = bench("--only", "wdbc:logistic:²")
    assert code == 2
    assert "--only 'wdbc:logistic:²' is not of the form task:method:repeat" in said


def test_a_cell_is_read_as_it_is_written_whatever_its_task_is_called():
    cell = Cell("a:b", "logistic", 3)
    assert parse_cell(str(cell)) == cell


def test_one_cell_may_be_run_where_nothing_was_before(bench, tmp_path):
    code, said, _ = bench("--only", "monk1:all_positive:0", "--out", tmp_path / "none")
    assert code == 0
    assert said.endswith(f"{tmp_path / 'none'} holds no figures for monk1:all_positive:0\n")
    assert not (tmp_path / "none").exists()


@pytest.fixture
def planned(monkeypatch):
    """The sweeps that were asked for, none of which is run."""
    plans = []
    monkeypatch.setattr("pu_bench.sweeps.pools.FEWEST_OF_A_CLASS", 100)
    monkeypatch.setattr(
        "pu_bench.command.run_sweeps",
        lambda plan, out, begun: plans.append(plan) or [{"error": None}],
    )
    monkeypatch.setattr("pu_bench.command.write_sweep_report", lambda out: out)
    return plans


def test_all_sweeps_may_be_asked_for_at_once_on_all_cores(bench, planned, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert bench("--sweep", "all", "--tasks", "monk1", "--methods", "random")[0] == 0
    (plan,) = planned
    assert list(plan.sweeps) == list(SWEEPS)
    assert plan.jobs == 7


@pytest.mark.usefixtures("nothing_shipped")
def test_a_strong_rival_that_cannot_be_run_is_left_out_of_a_sweep(bench, planned):
    code, said, _ = bench("--sweep", "pi", "--tasks", "monk1")
    assert code == 0
    assert "method puicl is left out: no weights named 'default' come" in said
    assert set(planned[0].methods) == set(SWEEP_METHODS) - {"puicl"}


def test_a_method_is_run_once_however_often_it_is_named_and_weights_are_tried(
    small_weights, tmp_path
):
    assert usable_methods(["random", "all_positive", "random"], None)[0] == [
        *("random", "all_positive")
    ]
    damaged = tmp_path / "model.safetensors"
    damaged.write_bytes(small_weights.read_bytes()[:-100])
    damaged.with_suffix(".json").write_bytes(small_weights.with_suffix(".json").read_bytes())
    with pytest.raises(InputError, match=r"^method puicl: .*model\.safetensors"):
        usable_methods(["puicl"], damaged)
