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
    """As everywhere; but `MAIN` starts as copies of a process at the ready, without torchrun.

    `tests/end_to_end`, and the tests here that start other scripts, or commands that are to fail
    or to be killed, start from nothing, with torchrun where there are several processes.
    """
    # The compiler is imported by every optimizer.
    ready = ForkServer("trainer.cli", "torch._inductor")

    def run(*command, check=True, **options):
        start = command.index(MAIN) if MAIN in command else None
        processes = command[3] if start else 1  # as `arguments` builds it
        if start is None or options or (processes > 1 and not check):
            return run_command(*command, check=check, **options)
        done = ready.run([str(part) for part in command[start:]], 900, processes)
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
