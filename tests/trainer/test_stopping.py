"""A run told to stop: what is saved, and that nothing is left of what was broken off."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from prior_gen.generator import generate_shards
from puicl_config import load_config
from trainer.checkpoint import checkpoints
from trainer.cli import _resolve
from trainer.fit import fit
from trainer.world import World

ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "trainer" / "main.py"


def test_sigterm_writes_a_checkpoint_and_exits_with_zero(
    tiny_yaml, all_shards, tmp_path, arguments
):
    out = tmp_path / "run"
    long = ["prior.steps_per_stage=4", "train.checkpoint_every=1000"]
    command = arguments(tiny_yaml, all_shards, out, *long)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, *map(str, command)], env=environment, stdout=subprocess.PIPE, text=True
    )
    ledger = out / "ledger.jsonl"
    while not ledger.exists() or not ledger.read_text().count("\n"):
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    steps = len(ledger.read_text().splitlines())
    assert checkpoints(out / "checkpoints")[-1].name == f"step-{steps:08d}"
    assert steps == 18 or (
        f"asked to stop at step {steps}, which is saved; the same command goes on" in output
    )


def test_when_its_time_is_up_a_run_ends_with_the_step_at_hand(
    tiny_yaml, all_shards, tmp_path, capsys
):
    config = _resolve(load_config(tiny_yaml, ["train.max_seconds=1.0e-9"]), "cpu")
    for step in (1, 2):  # begun again, it makes one more: no start is in vain
        fit(config, all_shards, tmp_path, World(0, 1, torch.device("cpu")))
        assert checkpoints(tmp_path / "checkpoints")[-1].name == f"step-{step:08d}"
        assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == step
        assert f"asked to stop at step {step}, which is saved" in capsys.readouterr().out


def test_a_plan_ends_where_it_ends_whatever_max_steps_says(
    tiny_yaml, all_shards, reference_run, tmp_path, capsys
):
    run = shutil.copytree(reference_run, tmp_path / "run")
    config = _resolve(load_config(tiny_yaml, ["train.max_steps=100"]), "cpu")
    fit(config, all_shards, run, World(0, 1, torch.device("cpu")))
    said = capsys.readouterr().out
    assert "from step 18 to 18 on 1 process" in said
    assert "beyond train.max_steps" not in said


@pytest.fixture
def one_more_step(tiny_yaml, all_shards, reference_run, tmp_path, capsys):
    """What a run that stands at step 10 says as it makes one step more, its time being up."""
    run = shutil.copytree(reference_run, tmp_path / "run")
    for newer in checkpoints(run / "checkpoints")[1:]:
        shutil.rmtree(newer)

    def go_on(*overrides):
        config = _resolve(load_config(tiny_yaml, ["train.max_seconds=1.0e-9", *overrides]), "cpu")
        fit(config, all_shards, run, World(0, 1, torch.device("cpu")))
        return capsys.readouterr().out

    return go_on


def test_a_run_whose_time_is_up_with_its_last_step_was_not_stopped(one_more_step):
    assert "asked to stop" not in one_more_step("train.max_steps=11")


def test_a_run_that_is_stopped_at_the_end_of_phase_one_lacks_no_tail(one_more_step):
    for step in (11, 12):
        said = one_more_step()
        assert f"asked to stop at step {step}, which is saved" in said
    assert "phase 1 is done" not in said


# The trainer, whose first process gets SIGTERM while it computes, for the first time at step 7,
# MODULE's NAME.
INTERRUPTED = """
import os, signal
import MODULE as module
from trainer.cli import main

whole, told = NAME, []

def interrupted(*arguments):
    at_7 = STEP == 7
    if at_7 and os.environ.get("RANK", "0") == "0" and not told:
        told.append(os.kill(os.getpid(), signal.SIGTERM))
    return whole(*arguments)

NAME = interrupted
main()
"""
IN_GRADIENT = {
    "MODULE": "trainer.step",
    "NAME": "module.microbatch_gradient",
    "STEP": "arguments[0].step",
}
IN_EVALUATION = {
    "MODULE": "trainer.heldout",
    "NAME": "module.HeldoutSet._figures",
    "STEP": "7",
}


@pytest.mark.parametrize("where", [IN_GRADIENT, IN_EVALUATION], ids=["gradient", "evaluation"])
def test_a_signal_breaks_off_what_is_computed_and_leaves_no_trace(
    tiny,
    tiny_yaml,
    all_shards,
    reference_run,
    run_command,
    tmp_path,
    arguments,
    run_bytes,
    where,
):
    script, out, heldout = (tmp_path / name for name in ("interrupted.py", "run", "heldout"))
    content = INTERRUPTED
    for name, value in where.items():
        content = content.replace(name, value)
    script.write_text(content)
    options = ["train.checkpoint_every=100"]
    if where is IN_EVALUATION:
        generate_shards(tiny, heldout, [2, 3], split="heldout", jobs=1)
        options += [f"train.heldout={heldout}", "train.heldout_every=7"]
    command = arguments(tiny_yaml, all_shards, out, *options, processes=2)
    done = run_command(*(script if part == MAIN else part for part in command))
    assert "asked to stop at step 7, which is saved" in done.stdout
    assert len((out / "ledger.jsonl").read_text().splitlines()) == 7
    assert checkpoints(out / "checkpoints")[-1].name == "step-00000007"
    assert "heldout" not in (out / "metrics.jsonl").read_text()
    run_command(*command)
    assert run_bytes(out) == run_bytes(reference_run)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    evaluated = [line["step"] for line in lines if "heldout_loss" in line]
    assert evaluated == ([7, 14, 18] if where is IN_EVALUATION else [])


@pytest.mark.slow
def test_a_signal_to_the_whole_group_leaves_loader_processes_at_work(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments, run_bytes
):
    out, ledger = tmp_path / "run", tmp_path / "run" / "ledger.jsonl"
    options = ["train.loader_processes=2", "train.checkpoint_every=100"]
    command = arguments(tiny_yaml, all_shards, out, *options)

    def stopped_by(number):
        """The run, stopped as torchrun and schedulers do it once it has made a step more."""
        before = ledger.read_text().count("\n") if ledger.exists() else 0
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while process.poll() is None and (
            not ledger.exists() or ledger.read_text().count("\n") <= before
        ):
            time.sleep(0.01)
        if number == signal.SIGKILL:
            process.kill()
        else:
            os.killpg(process.pid, number)
        # To its end, which comes once the last of the group has closed the pipe.
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    status, output = stopped_by(signal.SIGTERM)
    assert status == 0, output
    assert "asked to stop" in output or "step 18 of 18" in output
    assert "Traceback" not in output
    assert stopped_by(signal.SIGKILL)[0] in (0, -signal.SIGKILL)
    run_command(*command)
    assert run_bytes(out) == run_bytes(reference_run)
