"""What the trainer's tests share: how to launch it, and one run that was never stopped."""

from pathlib import Path

import pytest

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
def run_command(run_command, ready):
    """As everywhere; but scripts, which are trainers, start as copies, without torchrun, too.

    `tests/end_to_end`, and the tests here that kill their trainers or ask for `run_afresh`, start
    them from nothing, with torchrun where there are several processes.
    """

    def run(*command, check=True, **options):
        start = next((n for n, part in enumerate(command) if str(part).endswith(".py")), None)
        if start is None:
            return run_command(*command, check=check, **options)
        processes = command[3] if start else 1  # as `arguments` builds it
        # The compiler is imported by every optimizer.
        imports = ["trainer.cli", "torch._inductor"]
        done = ready.run([str(part) for part in command[start:]], imports, processes, **options)
        if check:
            assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


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
