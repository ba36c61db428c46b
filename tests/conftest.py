"""A tiny experiment that every room's tests share."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from forking import ForkServer
from unsynced import leave_files_unsynced

from puicl_config import Config, ModelConfig, load_config
from puicl_model import PUICL, save_model

ROOT = Path(__file__).resolve().parent.parent

# Tests run many small processes side by side; more threads only slow them down.
os.environ["OMP_NUM_THREADS"] = "1"
# A shell that starts them in the background has them ignore SIGINT, and with them all they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
leave_files_unsynced()

TINY_YAML = """
name: tiny
prior: {stages: 3, steps_per_stage: 4, tail_steps: 6, microbatches_per_step: 4,
  tasks_per_microbatch: 3, n_features: [2, 4], n_labeled: [10, 20]}
shards: {parts_per_stage: 3, chunk_cells: 1024}
model: {embedding_size: 16, layers: 2, heads: 2, feedforward_size: 32}
train:
  phase1: {peak: 3.0e-3, floor: 3.0e-4, warmup_steps: 3}
  phase2: {peak: 3.0e-4, floor: 3.0e-5, warmup_steps: 2}
  checkpoint_every: 5
  digest_every: 3
"""

# Command lines, one after another in one process: starting one takes longer than being refused.
_ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from MODULE import main

lines, told = json.loads(sys.argv[1]), []
for arguments in lines:
    sys.argv[1:] = arguments
    errors, code = io.StringIO(), 0
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    told.append([code, errors.getvalue()])
print(json.dumps(told))
"""


@pytest.fixture(scope="session")
def untrained_weights(tmp_path_factory):
    def write(card: dict | None = None, **sizes) -> Path:
        """Weights of an untrained network, small unless its sizes are given."""
        small = {"embedding_size": 16, "layers": 2, "heads": 4, "feedforward_size": 16}
        config = ModelConfig(**{**small, **sizes})
        model = PUICL(config, torch.Generator().manual_seed(4))
        path = tmp_path_factory.mktemp("weights") / "model.safetensors"
        save_model(path, model.state_dict(), {"model": config.model_dump(), **(card or {})})
        return path

    return write


@pytest.fixture(scope="session")
def tiny_yaml(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("config") / "tiny.yaml"
    path.write_text(TINY_YAML, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def tiny(tiny_yaml) -> Config:
    return load_config(tiny_yaml)


@pytest.fixture(scope="session")
def all_shards(tiny, tmp_path_factory) -> Path:
    """Every stage of the tiny plan as zarr; not to be written to (copy it first)."""
    from prior_gen.generator import generate_shards

    folder = tmp_path_factory.mktemp("shards") / "all"
    generate_shards(tiny, folder, range(1, tiny.prior.total_stages + 1), jobs=1)
    return folder


@pytest.fixture
def own_shards(all_shards, tmp_path) -> Path:
    """A copy of the tiny plan's shards, for tests that damage it."""
    return Path(shutil.copytree(all_shards, tmp_path / "shards"))


@pytest.fixture
def called(monkeypatch, capsys):
    """Call a command's `main` here with its command line; exit code, stdout, stderr."""

    def call(main, *words) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [*map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return stop.value.code or 0, said.out, said.err

    return call


@pytest.fixture
def prior_gen_command(called):
    """Call `prior-gen` here; exit code, stdout, stderr."""
    from prior_gen.cli import main

    return lambda *words: called(main, "prior-gen", *words)


@pytest.fixture(scope="session")
def run_afresh():
    """Run a command of the project as a user would, from a checkout."""

    def run(*arguments, check=True, cwd=None) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=900,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
            cwd=cwd,
        )
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def ready():
    """A process of which commands start as copies."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def run_command(run_afresh, ready):
    """Run a command as `run_afresh` does; but what is code of a `main` starts as a copy of a
    process that has imported it."""

    def run(*arguments, check=True, cwd=None) -> subprocess.CompletedProcess:
        imports = re.findall(r"from ([\w.]+) import main\b", str(arguments[1]))
        if arguments[0] != "-c" or not imports:
            return run_afresh(*arguments, check=check, cwd=cwd)
        done = ready.run([*map(str, arguments)], imports, cwd=cwd)
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(scope="session")
def refusals(run_command):
    """Called with a module whose `main` is a command, and lists of arguments: what each one says
    when it is refused, which is one sentence with exit code 2."""

    def refused(module, *lines, **options) -> list[str]:
        lines = [[*map(str, line)] for line in lines]
        program = ("-c", _ONE_AFTER_ANOTHER.replace("MODULE", module), json.dumps(lines))
        told = json.loads(run_command(*program, **options).stdout)
        for (code, said), line in zip(told, lines, strict=True):
            assert code == 2, (line, said)
            assert said.startswith("error: "), (line, said)
            assert said.count("\n") == 1, (line, said)
        return [said for _, said in told]

    return refused
