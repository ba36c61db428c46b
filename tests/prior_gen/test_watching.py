"""The progress of a run, by what lies there: of every look, and of no part that is older."""

import os
import re
import time

import pytest

from prior_gen import generate_shards
from prior_gen.watching import StageProgress, watching
from shard_io import PartId, ShardError
from shard_io.store import LocalStore


@pytest.fixture
def quickly(monkeypatch):
    monkeypatch.setattr(LocalStore, "look_every", 1e-3)


@pytest.mark.usefixtures("quickly")
def test_progress_counts_the_parts_of_every_look(tiny, tmp_path, capsys):
    tasks = {PartId(1, number): 4 for number in range(3)}
    (tmp_path / "entries").mkdir()
    with watching(tmp_path, tasks) as progress:
        for number in range(3):
            (tmp_path / PartId(1, number).entry_path).write_text("{}")
            deadline = time.monotonic() + 30
            while progress.done < 4 * (number + 1) and time.monotonic() < deadline:
                time.sleep(1e-3)
    assert re.search(r"12/12 tasks .* 3/3 parts, stage 1, 0s left", capsys.readouterr().err)


@pytest.mark.usefixtures("quickly")
def test_what_was_there_before_a_repair_is_no_progress(own_shards, capsys):
    an_hour_ago = time.time() - 3600  # file systems' clocks are coarse
    os.utime(own_shards / PartId(1, 0).entry_path, (an_hour_ago, an_hour_ago))
    capsys.readouterr()  # what making the shards said, if this test is the first to need them
    with watching(own_shards, {PartId(1, 0): 4}) as progress:
        time.sleep(0.02)
    assert (progress.done, capsys.readouterr().err) == (0, "")


def test_a_look_that_fails_ends_no_run(tmp_path, monkeypatch):
    def unreachable(*_):
        raise ShardError("no network")

    monkeypatch.setattr(LocalStore, "present", unreachable)
    with watching(tmp_path, {PartId(1, 0): 4}) as progress:
        pass
    assert progress.done == 0


def test_a_part_done_at_once_has_no_rate():
    stages = StageProgress({PartId(1, 0): 10, PartId(1, 1): 10, PartId(2, 0): 10}, now=5.0)
    assert stages.advance([PartId(1, 0)], 5.0) == "stage 1: 10/20"
    assert stages.advance([PartId(1, 1)], 6.0) == "stage 1: 20/20"


def test_the_only_stage_has_no_figures_of_its_own():
    stages = StageProgress({PartId(7, number): 10 for number in range(2)}, now=5.0)
    assert stages.advance([PartId(7, 0)], 6.0) == "stage 7"


def test_a_run_says_how_far_it_is_and_in_which_stage(tiny, tmp_path, capsys):
    generate_shards(tiny, tmp_path / "shards", [2], jobs=1)
    told = capsys.readouterr().err
    assert "prior-gen: 48/48 tasks (100%)" in told
    assert "3/3 parts, stage 2, 0s left" in told


def test_the_last_stage_begun_has_a_rate_and_a_time_left_of_its_own():
    tasks = {PartId(stage, number): 10 for stage in (1, 2) for number in range(4)}
    stages = StageProgress(tasks, now=100.0)
    assert stages.advance([PartId(1, 0)], 105.0) == "stage 1: 10/40, 2/s, 15s left"
    # Begun when the look before found nothing of it yet.
    assert stages.advance([PartId(1, 1), PartId(2, 0)], 110.0) == "stage 2: 10/40, 2/s, 15s left"
    assert stages.advance([PartId(1, 2), PartId(1, 3)], 115.0) == "stage 1: 40/40"
    assert stages.advance([PartId(2, 1)], 125.0) == "stage 2: 20/40, 1/s, 20s left"
