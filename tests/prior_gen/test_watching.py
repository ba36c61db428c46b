"""The progress of a run, by what lies there: of every look, and of no part that is older."""

import re
import time

import pytest

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
    assert re.search(r"12/12 tasks .* 3/3 parts, stage 1: 12/12", capsys.readouterr().err)


@pytest.mark.usefixtures("quickly")
def test_what_was_there_before_a_repair_is_no_progress(all_shards, capsys):
    with watching(all_shards, {PartId(1, 0): 4}) as progress:
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
    stages = StageProgress({PartId(1, number): 10 for number in range(2)}, now=5.0)
    assert stages.advance([PartId(1, 0)], 5.0) == "stage 1: 10/20"
