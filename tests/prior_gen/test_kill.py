"""Kill -9 at random moments: whole parts at every moment, the same bytes in the end."""

import contextlib
import os
import random
import signal
import time
from pathlib import Path

import pytest
from folders import folder_bytes
from launched import entries_of, launch, processes_of_session, wait_until

from prior_gen.convert import convert_shards
from prior_gen.generator import generate_shards
from puicl_config import load_config
from shard_io import open_shards, problems_of, verify_part

PLAN = ["prior.stages=2", "prior.tail_steps=0", "shards.parts_per_stage=8"]
linux = pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="looks into /proc")


def kill_again_and_again(tiny_yaml, tmp_path, steps, kills, jobs, seed):
    """Returns in how many of `kills` launches the run was killed half way, while writing."""
    overrides = [*PLAN, f"prior.steps_per_stage={steps}"]
    config = load_config(tiny_yaml, overrides)
    generate_shards(config, tmp_path / "never-killed", [1, 2], jobs=1)
    arguments = [word for override in overrides for word in ("--set", override)]
    folder, rng, half_way = tmp_path / "killed", random.Random(seed), 0
    arguments += ["--config", tiny_yaml, "--stages", "1-2", "--out", folder]
    for number in range(kills):
        before = len(entries_of(folder))
        run = launch(*arguments, "--jobs", jobs[number % len(jobs)])
        # Half of the kills fall anywhere from the start, half where parts are being published.
        if number % 2:
            wait_until(lambda n=before, run=run: len(entries_of(folder)) > n or run.poll() == 0)
        time.sleep(rng.uniform(0, 0.3 if number % 2 else 2.5))
        # A scheduler kills every process, an impatient user the one whose number is known. A run
        # that found nothing left to do is gone already.
        with contextlib.suppress(ProcessLookupError):
            (os.killpg if rng.random() < 0.5 else os.kill)(run.pid, signal.SIGKILL)
        run.communicate()
        wait_until(lambda run=run: not processes_of_session(run.pid), seconds=60)
        there = len(entries_of(folder))
        half_way += run.returncode == -signal.SIGKILL and 0 < there < 16
        if (folder / "manifest.json").exists():
            parts = open_shards(folder).published_parts()
            assert len(parts) == there >= before
            assert [verify_part(folder, part) for part in parts] == [None] * there
    for _ in range(2):  # once to finish, once to find all done
        run = launch(*arguments, "--jobs", "1")
        told, complaint = run.communicate()
        assert run.returncode == 0, complaint
    assert "wrote 0 parts" in told
    assert list(problems_of(folder)) == []
    assert not (folder / ".staging").exists()
    assert folder_bytes(folder) == folder_bytes(tmp_path / "never-killed")
    return half_way


@linux
def test_a_run_killed_again_and_again_ends_with_the_bytes_of_one_never_killed(tiny_yaml, tmp_path):
    assert kill_again_and_again(tiny_yaml, tmp_path, 30, kills=4, jobs=[1, 2], seed=1) >= 1


@linux
@pytest.mark.slow
@pytest.mark.parametrize("jobs", [[1], [2], [1, 2, 3]])
def test_thirty_kills_change_nothing(tiny_yaml, tmp_path, jobs):
    half_way = kill_again_and_again(tiny_yaml, tmp_path, 1800, kills=30, jobs=jobs, seed=len(jobs))
    print(f"30 kills with jobs {jobs}, {half_way} of them with some but not all parts published")
    assert half_way >= 10


@linux
def test_workers_whose_run_was_killed_end_by_themselves(tiny_yaml, tmp_path):
    folder = tmp_path / "shards"
    run = launch(
        *("--config", tiny_yaml, "--set", "prior.steps_per_stage=2000", "--stages", "1-3"),
        *("--set", "shards.parts_per_stage=200", "--out", folder, "--jobs", "2"),
    )
    wait_until(lambda: entries_of(folder) or run.poll() is not None)
    assert len(processes_of_session(run.pid)) >= 3
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    wait_until(lambda: not processes_of_session(run.pid), seconds=30)
    run.communicate()
    assert not list(folder.glob(".staging/*"))  # they took their half-written files away
    assert all(verify_part(folder, part) is None for part in open_shards(folder).published_parts())


@pytest.mark.parametrize("command", ["generate", "repair", "convert"])
def test_what_a_killed_writer_left_half_written_is_gone_after_the_next(
    tiny, own_shards, tmp_path, prior_gen_command, command
):
    folder = own_shards
    if command == "convert":
        folder = tmp_path / "tars"
        convert_shards(own_shards, folder, "webdataset", jobs=1)
    dead = folder / ".staging" / "dead"
    dead.mkdir(parents=True)
    (dead / "lock").touch()
    (dead / "half").write_text("of a part")
    if command == "generate":
        generate_shards(tiny, folder, [1], jobs=1)
    elif command == "convert":
        convert_shards(own_shards, folder, "webdataset", jobs=1)
    else:
        assert prior_gen_command("repair", folder, "--jobs", 1)[0] == 0
    assert not dead.exists()
