"""`benchmarks/pretrain_weights.sh`: weights in, candidates out, to the same bits after a stop."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[2]
# A few tasks on the default's own network, from its own weights.
SMALL = [
    "prior.seed=99",
    "prior.steps_per_stage=1",
    "prior.tail_steps=2",
    "prior.microbatches_per_step=2",
    "prior.tasks_per_microbatch=2",
    "shards.parts_per_stage=1",
]


def stretch(out, *overrides):
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["benchmarks/pretrain_weights.sh", "gpu_deep_again", "default", out, *SMALL, *overrides],
        cwd=ROOT,
        env={**os.environ, "PATH": tools, "JOBS": "1", "PROCESSES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_stretch_goes_on_after_a_stop_to_the_same_candidates(tmp_path):
    whole = stretch(tmp_path / "whole")
    assert whole.returncode == 0, whole.stderr
    stopped = stretch(tmp_path / "stopped", "train.max_seconds=0.1")
    assert stopped.returncode == 0, stopped.stderr
    assert "the same command goes on" in stopped.stderr
    assert not (tmp_path / "stopped" / "end.safetensors").exists()
    assert stretch(tmp_path / "stopped").returncode == 0
    shares = {"end": 0.0, "quarter": 0.25, "half": 0.5}
    for name, share in shares.items():
        ours, theirs = (tmp_path / run / f"{name}.safetensors" for run in ("whole", "stopped"))
        assert ours.read_bytes() == theirs.read_bytes()
        card = json.loads(ours.with_suffix(".json").read_text())
        assert (card["steps"], card.get("start_share", 0.0)) == (3, share)
        assert all(v.dtype == torch.bfloat16 for v in load_file(ours).values())
    end, quarter, half = ((tmp_path / "whole" / f"{n}.safetensors").read_bytes() for n in shares)
    assert len({end, quarter, half}) == 3


def test_a_config_that_does_not_exist_is_one_sentence(tmp_path):
    found = stretch(tmp_path / "out", "prior.nonsense=1")
    assert found.returncode == 1
    assert found.stderr.startswith("error: ")
    assert "nonsense" in found.stderr
    assert "Traceback" not in found.stderr
