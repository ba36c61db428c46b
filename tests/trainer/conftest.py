"""What the trainer's tests share: how to launch it, and one run that was never stopped."""

from pathlib import Path

import pytest
from forking import ForkServer

from trainer.checkpoint import checkpoints

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"


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
def run_command(run_command):
    """As everywhere; but `MAIN` without torchrun starts as a copy of a process at the ready.

    `tests/end_to_end` starts it from nothing, and what torchrun starts does so here, too.
    """
    # The compiler is imported by every optimizer.
    ready = ForkServer("trainer.cli", "torch._inductor")

    def run(first, *others, check=True, **options):
        if first != MAIN or options:
            return run_command(first, *others, check=check, **options)
        done = ready.run([str(part) for part in (first, *others)], timeout=900)
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    yield run
    ready.close()


@pytest.fixture(scope="session")
def refused(refusals):
    """What each of these commands, as `arguments` builds them, says when it is refused."""
    return lambda *commands: refusals("trainer.cli", *(command[1:] for command in commands))


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
