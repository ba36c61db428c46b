"""What the trainer's tests share: how to launch it, and one run that was never stopped."""

import json
from pathlib import Path

import pytest

from trainer.checkpoint import checkpoints

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"

# Command lines, one after another in one process: starting one takes longer than being refused.
_ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from trainer.cli import main

told = []
for arguments in json.loads(sys.argv[1]):
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
def arguments():
    """The command line of a run, for `run_command`."""

    def build(config, shards, out, *overrides, processes=1):
        launch = []
        if processes > 1:
            launch = ["-m", "torch.distributed.run", "--nproc-per-node", processes]
            launch += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
        return [*launch, MAIN, "--config", config, "--shards", shards, "--out", out, *overrides]

    return build


@pytest.fixture(scope="session")
def refusals(run_command):
    """Called with command lines as `arguments` builds them: what each says when it is refused."""

    def refused(*commands) -> list[str]:
        lines = [[str(word) for word in command if word != MAIN] for command in commands]
        told = json.loads(run_command("-c", _ONE_AFTER_ANOTHER, json.dumps(lines)).stdout)
        for (code, errors), line in zip(told, lines, strict=True):
            assert code == 2, (line, errors)
            assert errors.startswith("error: "), (line, errors)
            assert errors.count("\n") == 1, (line, errors)
        return [errors for _, errors in told]

    return refused


@pytest.fixture(scope="session")
def run_bytes():
    """What two equal runs have in common, byte by byte."""

    def read(run: Path) -> dict[str, bytes]:
        newest = checkpoints(run / "checkpoints")[-1]
        names = ["ledger.jsonl", "model.safetensors"]
        return {
            **{name: (run / name).read_bytes() for name in names},
            newest.name: (newest / "state.safetensors").read_bytes(),
            "state": (newest / "state.json").read_bytes(),
        }

    return read


@pytest.fixture(scope="session")
def reference_run(tiny_yaml, all_shards, run_command, arguments, tmp_path_factory):
    """The tiny plan trained by one process, never stopped."""
    out = tmp_path_factory.mktemp("runs") / "reference"
    run_command(*arguments(tiny_yaml, all_shards, out))
    return out
