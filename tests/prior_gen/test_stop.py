"""Ctrl-C and SIGTERM: one sentence, the right exit code, no warnings, nobody left behind."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from folders import folder_bytes
from launched import entries_of, launch, processes_of_session, wait_until

import prior_gen.generator as generator
import puicl_config.workers.lifeline as lifeline
from prior_gen.generator import generate_shards
from puicl_config import InputError, load_config
from puicl_config.workers.stopping import Terminated, signals_deferred
from shard_io import open_shards, stray_files, verify_part

LONG = ["prior.steps_per_stage=2000", "shards.parts_per_stage=200"]
SENTENCE = "stopped; published parts are whole: run the same command again to go on\n"
# What is sent, to the process alone or to its whole group as a terminal does, and the jobs.
QUICK = [("SIGINT", os.killpg, 2), ("SIGTERM", os.kill, 1), ("SIGTERM", os.kill, 2)]
SLOW = [
    (name, send, jobs)
    for name in ("SIGINT", "SIGTERM")
    for send in (os.kill, os.killpg)
    for jobs in (1, 2)
    if (name, send, jobs) not in QUICK
]
pytestmark = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks into /proc")


def stop(tiny_yaml, folder, name, send, jobs, ready):
    run = launch(
        *("--config", tiny_yaml, "--stages", "1-3", "--out", folder, "--jobs", jobs),
        *(word for override in LONG for word in ("--set", override)),
    )
    wait_until(lambda: ready(folder) or run.poll() is not None)
    send(run.pid, getattr(signal, name))
    told, complaint = run.communicate(timeout=120)
    wait_until(lambda: not processes_of_session(run.pid), seconds=30)
    assert run.returncode == {"SIGINT": 130, "SIGTERM": 143}[name], complaint
    assert told == ""
    lines = complaint.splitlines(keepends=True)
    assert [line for line in lines if not line.startswith("prior-gen: ")] == [SENTENCE]


@pytest.mark.parametrize(
    ("name", "send", "jobs"),
    [*QUICK, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_a_busy_run_that_is_stopped_says_how_to_go_on_and_leaves_nothing(
    tiny_yaml, tmp_path, name, send, jobs
):
    folder = tmp_path / "shards"
    stop(tiny_yaml, folder, name, send, jobs, ready=entries_of)
    parts = open_shards(folder).published_parts()
    assert 0 < len(parts) < 600
    assert all(verify_part(folder, part) is None for part in parts)
    assert list(stray_files(folder)) == []  # the manifest holds every entry, too
    assert not (folder / ".staging").exists()


@pytest.mark.slow
@pytest.mark.parametrize("send", [os.kill, os.killpg])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_run_that_is_stopped_while_its_workers_start_says_the_same(
    tiny_yaml, tmp_path, name, send
):
    folder = tmp_path / "shards"
    stop(tiny_yaml, folder, name, send, 2, ready=lambda folder: (folder / "manifest.json").exists())
    assert list(stray_files(folder)) == []


def test_a_stopped_run_goes_on_in_the_same_process(tiny, all_shards, tmp_path, monkeypatch):
    real, made = generator.generate_microbatch, []

    def stopped_at_twenty(*arguments):
        made.append(arguments)
        if len(made) == 20:
            os.kill(os.getpid(), signal.SIGINT)
            wait_until(lifeline._dropping.is_set)
        return real(*arguments)

    monkeypatch.setattr(generator, "generate_microbatch", stopped_at_twenty)
    with pytest.raises(KeyboardInterrupt):
        generate_shards(tiny, tmp_path / "shards", range(1, 6), jobs=1)
    assert len(made) == 20  # the part at hand was dropped at once
    assert len(open_shards(tmp_path / "shards").published_parts()) == 3
    generate_shards(tiny, tmp_path / "shards", range(1, 6), jobs=1)
    assert folder_bytes(tmp_path / "shards") == folder_bytes(all_shards)


def test_the_first_signal_waits_for_the_end_of_the_block_and_the_second_does_not():
    stops, steps = [], []

    def signalled(count):
        with signals_deferred(lambda: stops.append(count)):
            os.kill(os.getpid(), signal.SIGINT)
            wait_until(lambda: stops[-1:] == [count])
            if count == 2:
                os.kill(os.getpid(), signal.SIGINT)
                wait_until(lambda: False, seconds=20)
            steps.append(count)

    with pytest.raises(KeyboardInterrupt):
        signalled(1)
    assert (stops, steps) == ([1], [1])
    with pytest.raises(KeyboardInterrupt):
        signalled(2)
    assert (stops, steps) == ([1, 2], [1])
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    assert issubclass(Terminated, KeyboardInterrupt)


def test_what_is_started_while_signals_wait_does_not_get_them():
    told = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    for waits in (contextlib.nullcontext, signals_deferred):
        with waits():
            child = subprocess.run(
                [sys.executable, "-c", told], capture_output=True, text=True, check=True
            )
        assert child.stdout == f"{waits is signals_deferred}\n"


def test_a_signal_that_is_ignored_stays_ignored():
    """As in the background of a shell, or under nohup."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with signals_deferred():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_worker_killed_from_outside_is_one_sentence(tiny_yaml, tmp_path):
    config = load_config(tiny_yaml, LONG)

    folder = tmp_path / "shards"

    def kill_workers_when_busy():
        wait_until(lambda: entries_of(folder))
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGKILL)

    threading.Thread(target=kill_workers_when_busy, daemon=True).start()
    with pytest.raises(InputError, match="a worker process was killed from outside"):
        generate_shards(config, folder, [1, 2, 3], jobs=2)
    assert all(verify_part(folder, part) is None for part in open_shards(folder).published_parts())


def workers_of(parent):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and b"LokyProcess" in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found
