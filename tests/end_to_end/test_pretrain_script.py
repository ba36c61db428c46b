"""`benchmarks/pretrain_weights.sh`: weights in, candidates out, to the same bits after a stop."""

import json
import os
import subprocess
import sys
import time
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


def begun(out, *overrides, tools=None, path=None):
    """The script as a process; `tools`: a folder of commands to take the place of others.

    path: where all others are, instead of the environment's folders.
    """
    others = [Path(sys.executable).parent, os.environ["PATH"]] if path is None else [path]
    folders = [*([tools] if tools else []), *others]
    return subprocess.Popen(
        ["benchmarks/pretrain_weights.sh", "gpu_deep_again", "default", out, *SMALL, *overrides],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": os.pathsep.join(map(str, folders)),
            "JOBS": "1",
            "PROCESSES": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stretch(out, *overrides, tools=None):
    process = begun(out, *overrides, tools=tools)
    _, errors = process.communicate(timeout=900)
    return subprocess.CompletedProcess(process.args, process.returncode, stderr=errors)


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


@pytest.fixture
def stand_ins(tmp_path):
    """`prior-gen` and `torchrun` that write their process ids and wait; and these, once there."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("prior-gen", "torchrun"):
        script = folder / name
        dry = 'case "$*" in *--dry-run*) exit 0 ;; esac\n'
        script.write_text(f"#!/bin/sh\n{dry}echo $$ > {folder}/{name}.pid\nexec sleep 100\n")
        script.chmod(0o755)

    def pids():
        files = [folder / f"{name}.pid" for name in ("prior-gen", "torchrun")]
        while not all(file.exists() and file.read_text().strip() for file in files):
            time.sleep(0.05)
        return [int(file.read_text()) for file in files]

    return folder, pids


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_script_killed_alone_takes_generator_and_trainer_along(tmp_path, stand_ins):
    tools, pids = stand_ins
    process = begun(tmp_path / "out", tools=tools)
    both = pids()
    process.terminate()
    process.communicate(timeout=30)
    assert process.returncode == 143
    assert not any(map(is_alive, both))


def test_a_generator_that_fails_is_told_and_ends_the_trainer(tmp_path, stand_ins):
    tools, _ = stand_ins
    script = (tools / "prior-gen").read_text()
    failing = script.replace(
        "exec sleep 100",
        f"while [ ! -e {tools}/torchrun.pid ]; do sleep 0.1; done\necho no space; exit 2",
    )
    (tools / "prior-gen").write_text(failing)
    found = stretch(tmp_path / "out", tools=tools)
    assert found.returncode == 1
    assert "no space" in found.stderr
    assert not is_alive(int((tools / "torchrun.pid").read_text()))


def test_a_checkout_that_is_not_installed_generates_and_exports(tmp_path):
    """As on a machine that has the libraries alone: no `prior-gen` and no `puicl` on the PATH."""
    tools, called = tmp_path / "tools", tmp_path / "called"
    tools.mkdir()
    module = '"$1 $2" in "-m prior_gen" | "-m puicl_cli"'
    scripts = {
        "python": f'case {module}) echo "$*" >> {called} ;; *) exec {sys.executable} "$@" ;; esac',
        "torchrun": f'mkdir -p {tmp_path}/out/run; echo \'{{"steps": 3, "of_steps": 3}}\' '
        f"> {tmp_path}/out/run/model.json",
    }
    for name, script in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    process = begun(tmp_path / "out", tools=tools, path="/usr/bin:/bin")
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors
    lines = called.read_text().splitlines()
    assert [line.split()[1] for line in lines] == ["prior_gen"] * 2 + ["puicl_cli"] * 3
    assert lines[0].endswith("--dry-run")


def test_a_plan_without_a_tail_is_generated(tmp_path, stand_ins):
    tools, pids = stand_ins
    asked = tools / "asked"
    script = (tools / "prior-gen").read_text().replace("case", f'echo "$@" >> {asked}\ncase', 1)
    (tools / "prior-gen").write_text(script)
    process = begun(tmp_path / "out", "prior.tail_steps=0", tools=tools)
    pids()
    process.terminate()
    process.communicate(timeout=30)
    for line in asked.read_text().splitlines():
        assert "--stages 1-1 " in line
        assert "--tail" not in line


def test_a_folder_that_other_weights_were_judged_in_is_refused(tmp_path):
    out, weights = tmp_path / "out", tmp_path / "new.safetensors"
    out.mkdir()
    codes = []
    for content in ("one", "one", "two", "one"):
        weights.write_text(content)
        done = subprocess.run(
            ["benchmarks/same_weights.sh", out, weights],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        codes.append(done.returncode)
        refused = "holds the steps of other weights, or on other tables" in done.stderr
        assert refused == (content == "two")
    assert codes == [0, 0, 1, 0]
