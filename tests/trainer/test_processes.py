"""Processes that do not see the same files, as on nodes with disks of their own."""

import shutil
from pathlib import Path

import pytest

from prior_gen.generator import generate_shards
from trainer.agreement import differences
from trainer.checkpoint import checkpoints

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"
# "RANK" in an argument is the process's own.
APART = """
import os, sys

sys.argv = [argument.replace("RANK", os.environ["RANK"]) for argument in sys.argv]
from trainer.cli import main

main()
"""


@pytest.fixture
def run_apart(run_command, arguments, tmp_path):
    """Two processes of one run, each with its own folders; returns what they print as they end."""
    program = tmp_path / "apart.py"
    program.write_text(APART, encoding="utf-8")

    def run(config, *more):
        places = (tmp_path / "shards-RANK", tmp_path / "run-RANK")
        command = arguments(config, *places, *more, processes=2)
        done = run_command(*(program if part == MAIN else part for part in command), check=False)
        assert done.returncode != 0
        return done.stderr

    return run


def test_what_differs_is_told_with_the_processes_of_each_value():
    alike = {"step": "5", "weights": "ab"}
    assert differences([alike] * 3) == []
    assert differences([alike, {**alike, "weights": "cd"}, alike, alike]) == [
        "weights is ab (processes 0,2-3), cd (process 1)"
    ]
    assert differences([alike, {"step": "0", "weights": "cd"}]) == [
        "step is 5 (process 0), 0 (process 1)",
        "weights is ab (process 0), cd (process 1)",
    ]


def test_processes_that_stand_elsewhere_or_see_other_shards_do_not_start(
    tiny_yaml, tiny, all_shards, reference_run, run_apart, tmp_path
):
    shutil.copytree(reference_run, tmp_path / "run-0")
    shutil.rmtree(checkpoints(tmp_path / "run-0" / "checkpoints")[-1])
    (tmp_path / "shards-0").symlink_to(all_shards)
    generate_shards(tiny, tmp_path / "shards-1", [1, 2, 3], jobs=1)
    ledger = (tmp_path / "run-0" / "ledger.jsonl").read_bytes()
    said = run_apart(tiny_yaml)
    assert "error: the processes do not start alike: step is 15 (process 0), 0 (process 1)" in said
    assert "; last step is 18 (process 0), 12 (process 1); weights is " in said
    assert "config is" not in said
    assert "held-out" not in said.split("; all of them")[0]
    assert (tmp_path / "run-0" / "ledger.jsonl").read_bytes() == ledger
    assert not (tmp_path / "run-1").exists()
