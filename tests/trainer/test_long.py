"""The trainer's promises over hundreds of steps: slow, with real processes and random kills."""

import contextlib
import functools
import http.server
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from prior_gen.generator import generate_shards
from puicl_config import config_yaml, load_config
from trainer import compare_runs

pytestmark = pytest.mark.slow
PLAN = ("prior.stages=10", "prior.steps_per_stage=20", "prior.tail_steps=40")
STEPS = 240


@pytest.fixture(scope="module")
def long_plan(tiny_yaml, tmp_path_factory):
    """Config file, zarr shards and webdataset shards of 240 steps of four microbatches."""
    folder = tmp_path_factory.mktemp("long")
    config = load_config(tiny_yaml, [*PLAN, "train.checkpoint_every=10", "train.digest_every=1"])
    (folder / "long.yaml").write_text(config_yaml(config))
    stages = range(1, config.prior.total_stages + 1)
    generate_shards(config, folder / "zarr", stages, jobs=1)
    tar = load_config(folder / "long.yaml", ["shards.format=webdataset"])
    generate_shards(tar, folder / "tar", stages, jobs=1)
    return folder / "long.yaml", folder / "zarr", folder / "tar"


@pytest.fixture(scope="module")
def long_reference(long_plan, run_command, arguments, tmp_path_factory):
    config, shards, _ = long_plan
    out = tmp_path_factory.mktemp("long_run") / "reference"
    run_command(*arguments(config, shards, out, "train.loader_threads=0"))
    assert len((out / "ledger.jsonl").read_text().splitlines()) == STEPS
    return out


@pytest.fixture
def web_server(long_plan):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(long_plan[1]))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("processes", "place", "threads"),
    [(2, "zarr", 3), (4, "zarr", 1), (4, "tar", 2), (2, "http", 1), (1, "tar", 4)],
)
def test_240_steps_have_the_same_bits_on_any_processes_loaders_and_stores(
    long_plan, long_reference, web_server, run_command, arguments, run_bytes, tmp_path,
    monkeypatch, processes, place, threads,
):  # fmt: skip
    config, zarr, tar = long_plan
    monkeypatch.setenv("PUICL_CACHE", str(tmp_path / "cache"))
    shards = {"zarr": zarr, "tar": tar, "http": web_server}[place]
    out = tmp_path / "run"
    option = f"train.loader_threads={threads}"
    run_command(*arguments(config, shards, out, option, processes=processes))
    assert run_bytes(out) == run_bytes(long_reference)
    assert compare_runs(out, long_reference).steps == STEPS


def test_a_run_killed_at_random_moments_on_changing_processes_ends_in_the_same_bits(
    long_plan, long_reference, arguments, run_bytes, request, tmp_path
):
    config, zarr, tar = long_plan
    out, rng = tmp_path / "run", random.Random(0)
    environment = {**os.environ, "PYTHONPATH": str(request.config.rootpath)}
    kills, steps_at_kills = 0, []
    for attempt in range(60):
        processes = rng.choice([1, 2, 4])
        command = arguments(config, rng.choice([zarr, tar]), out, processes=processes)
        victim = subprocess.Popen(
            [sys.executable, *map(str, command)], env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        # Some kills come before the first step, some at or between steps, some in a checkpoint.
        ledger = out / "ledger.jsonl"
        if rng.random() < 0.3:
            wait_while(victim, rng.uniform(0, 8), ledger, lines=STEPS)
        else:
            wait_while(victim, 300, ledger, lines_of(ledger) + rng.randint(1, 45))
            time.sleep(rng.uniform(0, 0.3))
        if victim.poll() is not None:
            assert victim.returncode == 0, (attempt, victim.stderr.read())
            break
        for process in [*descendants(victim.pid), victim.pid]:
            kill(process)
        victim.communicate()
        kills += 1
        steps_at_kills.append(lines_of(ledger))
    else:
        pytest.fail(f"the run never ended; lines of the ledger at the kills: {steps_at_kills}")
    print(f"\n{kills} kills survived; lines of the ledger at each: {steps_at_kills}")
    assert kills >= 5
    assert run_bytes(out) == run_bytes(long_reference)
    assert [json.loads(line)["step"] for line in (out / "ledger.jsonl").open()] == [*range(STEPS)]
    assert not list((out / "checkpoints").glob("damaged-*"))


def lines_of(ledger: Path) -> int:
    """Steps recorded so far."""
    return ledger.read_bytes().count(b"\n") if ledger.exists() else 0


def wait_while(process: subprocess.Popen, seconds: float, ledger: Path, lines: int) -> None:
    """Until it has ended, so many seconds have passed, or its ledger has so many lines."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline and lines_of(ledger) < lines:
        time.sleep(0.005)


def descendants(pid: int) -> list[int]:
    """Processes that `pid` has started, and theirs; torchrun gives each worker its own session."""
    found = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found += [child, *descendants(child)]
    return found


def kill(pid: int) -> None:
    """SIGKILL, unless it has gone meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
