"""Follow mode: training on shards that are still being written."""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
import torch

from prior_gen.generator import generate_shards
from puicl_config import InputError, load_config
from shard_io import open_shards
from trainer.checkpoint import checkpoints
from trainer.cli import _resolve
from trainer.fit import fit
from trainer.follow import Follower, await_manifest
from trainer.loader import load, read_ahead
from trainer.world import World

PRIOR_GEN = "from prior_gen.cli import main; main()"


class Lines:
    """What a process prints, line by line."""

    def __init__(self, command, root):
        environment = {**os.environ, "PYTHONPATH": str(root)}
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.read: list[str] = []
        self._queue: queue.Queue = queue.Queue()
        threading.Thread(target=self._collect, daemon=True).start()

    def until(self, text, seconds=120):
        """Wait for a line that holds `text`."""
        deadline = time.monotonic() + seconds
        while not any(text in line for line in self.read):
            self.read.append(self._queue.get(timeout=max(deadline - time.monotonic(), 0.01)))

    def end(self, seconds=120):
        """The exit status, and everything printed."""
        status = self.process.wait(seconds)
        while (line := self._queue.get(timeout=seconds)) is not None:
            self.read.append(line)
        return status, "".join(self.read)

    def _collect(self):
        for line in self.process.stdout:
            self._queue.put(line)
        self._queue.put(None)


def test_a_run_that_follows_prior_gen_has_the_bits_of_one_started_afterwards(
    tiny_yaml, tiny, reference_run, run_command, arguments, run_bytes, request, tmp_path
):
    root, shards, out = request.config.rootpath, tmp_path / "shards", tmp_path / "run"
    generate_shards(tiny, shards, [1], jobs=1)
    # Alone, it trains stage 1, waits for stage 2, and a scheduler's SIGTERM finds it waiting.
    alone = Lines(arguments(tiny_yaml, shards, out, "train.follow=true"), root)
    alone.until("waiting for stage-0002-part-000: 0 of 3 parts of its stage are there")
    alone.process.send_signal(signal.SIGTERM)
    status, printed = alone.end()
    assert status == 0
    assert "asked to stop at step 4, which is saved" in printed
    assert checkpoints(out / "checkpoints")[-1].name == "step-00000004"
    # Two processes go on from there, while the other stages are written.
    pair = Lines(arguments(tiny_yaml, shards, out, "train.follow=true", processes=2), root)
    pair.until("waiting for stage-0002-part-000")
    generate_shards(tiny, shards, [4], jobs=1)  # stages may come in any order
    options = ("--config", tiny_yaml, "--out", shards, "--jobs", 1)
    run_command("-c", PRIOR_GEN, *options, "--stages", "2-5")
    status, printed = pair.end()
    assert status == 0
    # Once for each part that is not there when its turn comes, which depends on who is faster.
    # (A wait that goes on is told again, with how long it has been.)
    waits = re.findall(r"waiting for (stage-\S+):", printed)
    assert waits[0] == "stage-0002-part-000"
    assert len(set(waits)) == len(waits)
    assert run_bytes(out) == run_bytes(reference_run)


def follower(folder, asked=lambda: False, timeout=0.2, where=None):
    said: list[str] = []
    reader = open_shards(folder) if where is None else where
    world = World(0, 1, torch.device("cpu"))
    return Follower(reader, world, asked, timeout, said.append), said


def test_a_wait_ends_after_the_timeout_or_when_asked_and_never_holds_back_what_is_there(own_shards):
    for path in (own_shards / "entries").glob("stage-0003-part-00[12]*"):
        path.unlink()
    waiter, said = follower(own_shards)
    assert waiter.wait([(1, 0, 0), (3, 0, 0)]) is True
    assert said == []
    with pytest.raises(InputError, match=r"waited 0s for stage-0003-part-001 in .* nothing came"):
        waiter.wait([(3, 2, 0)])
    assert said == ["waiting for stage-0003-part-001: 1 of 3 parts of its stage are there"]
    waiter, _ = follower(own_shards, asked=lambda: True, timeout=60)
    assert waiter.wait([(3, 2, 0)]) is False
    assert waiter.wait([(3, 0, 0)]) is True


def test_the_timeout_counts_from_the_part_that_came_last(own_shards, monkeypatch):
    """Parts come after 3 and after 6 seconds, none after that: with a timeout of 4 until 10."""
    entries = [own_shards / "entries" / f"stage-0003-part-00{n}.json" for n in range(3)]
    hidden = [path.rename(path.with_suffix(".hidden")) for path in entries]
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    def sleep(_):
        clock.now += 1
        if clock.now in (3, 6):
            hidden.pop().rename(entries.pop())

    clock.sleep = sleep
    waiter, _ = follower(own_shards, timeout=4)
    monkeypatch.setattr("trainer.follow.time", clock)
    with pytest.raises(InputError, match="waited 4s for stage-0003-part-000 in"):
        waiter.wait([(3, step, 0) for step in range(4)])
    assert clock.now == 11


class Beside(World):
    """Two processes, of which the other is late from its third look on."""

    looks = 0

    def gather(self, rows, count):
        Beside.looks += 1
        other = torch.tensor([[1.0, 0.0, float(Beside.looks >= 3)]])
        return torch.cat([rows, other])


def test_a_wait_goes_on_while_parts_come_to_another_process(own_shards):
    (own_shards / "entries" / "stage-0003-part-001.json").unlink()
    two = Beside(0, 2, torch.device("cpu"))
    waiter = Follower(open_shards(own_shards), two, lambda: False, 1e-9, lambda _: None)
    with pytest.raises(InputError, match="nothing came"):
        waiter.wait([(3, 2, 0)])
    assert Beside.looks == 3


def test_survivors_are_waited_for_by_whole_stages(own_shards):
    from shard_io import FilteredReader

    (own_shards / "entries" / "stage-0003-part-002.json").unlink()
    filtered = FilteredReader(own_shards, "d >= 2")
    assert [part.name for part in filtered.awaited_parts((3, 0, 0))] == ["stage-0003-part-002"]
    assert filtered.awaited_parts((2, 0, 0)) == []


def test_what_was_read_or_counted_is_not_looked_for_again(own_shards, monkeypatch):
    """Behind a URL, each look costs requests."""
    from shard_io import FilteredReader
    from shard_io.store import LocalStore

    readers = open_shards(own_shards), FilteredReader(own_shards, "d >= 2")
    looks = [reader[2, 0, 0] and reader.awaited_parts for reader in readers]
    monkeypatch.setattr(LocalStore, "present", None)
    assert [look((2, 0, 0)) for look in looks] == [[], []]


def test_shards_that_are_not_begun_are_waited_for(own_shards, tmp_path):
    said: list[str] = []
    alone, nowhere = World(0, 1, torch.device("cpu")), tmp_path / "nowhere"
    assert await_manifest(own_shards, alone, lambda: False, 0.1, said.append) is True
    assert said == []
    with pytest.raises(InputError, match="still holds no shards: is prior-gen writing there"):
        await_manifest(nowhere, alone, lambda: False, 0.1, said.append)
    assert said == [f"waiting for prior-gen to begin {nowhere}"]
    assert await_manifest(nowhere, alone, lambda: True, 60, said.append) is False
    assert await_manifest(own_shards, alone, lambda: True, 60, said.append) is True
    (own_shards / "manifest.json").unlink()
    with pytest.raises(InputError, match="and no manifest: rebuild it with"):
        await_manifest(own_shards, alone, lambda: False, 0.1, said.append)


def test_that_a_folder_is_waited_for_is_said_once(tmp_path, monkeypatch):
    monkeypatch.setattr("shard_io.store.LocalStore.look_every", 1e-3)
    looks, said = [], []
    alone, nowhere = World(0, 1, torch.device("cpu")), tmp_path / "nowhere"
    await_manifest(nowhere, alone, lambda: looks.append(0) or len(looks) > 3, 60, said.append)
    assert said == [f"waiting for prior-gen to begin {nowhere}"]


def test_a_wait_that_goes_on_is_told_every_half_minute_with_how_long_it_has_been(
    own_shards, monkeypatch
):
    """Of the whole wait, though a part came after 5 seconds."""
    entries = [own_shards / "entries" / f"stage-0003-part-00{n}.json" for n in range(2)]
    hidden = [path.rename(path.with_suffix(".hidden")) for path in entries]
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)

    def sleep(_):
        clock.now += 5
        if clock.now == 5:
            hidden.pop().rename(entries.pop())

    clock.sleep = sleep
    waiter, said = follower(own_shards, asked=lambda: clock.now >= 80, timeout=1000)
    monkeypatch.setattr("trainer.follow.time", clock)
    assert waiter.wait([(3, step, 0) for step in range(4)]) is False
    of = "for stage-0003-part-000: {} of 3 parts of its stage are there"
    assert said == [
        f"waiting {of.format(1)}",
        f"waiting for 35s {of.format(2)}",
        f"waiting for 1m10s {of.format(2)}",
    ]


def test_a_run_that_follows_and_asks_for_some_tasks_only_begins_before_all_stages_are_there(
    tiny_yaml, own_shards, tmp_path
):
    for path in (own_shards / "entries").glob("stage-0002*"):
        path.unlink()
    options = ["train.follow=true", "train.where=d >= 2", "train.follow_timeout=1e-3"]
    config = _resolve(load_config(tiny_yaml, options), "cpu")
    with pytest.raises(InputError, match=r"for stage-0002-part-000 in .* nothing came"):
        fit(config, own_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    assert [path.name for path in checkpoints(tmp_path / "run" / "checkpoints")] == [
        "step-00000004"
    ]


class Late(World):
    """Two processes, of which the other sees the folder at its third look."""

    looks = 0

    def gather(self, rows, count):
        Late.looks += 1
        return torch.cat([rows, torch.tensor([[float(Late.looks < 3), 0.0, 0.0]])])


def test_no_process_goes_on_before_all_see_the_folder(own_shards):
    two = Late(0, 2, torch.device("cpu"))
    assert await_manifest(own_shards, two, lambda: False, 60, lambda _: None) is True
    assert Late.looks == 3


def test_nothing_is_read_ahead_that_is_not_there_yet(own_shards, monkeypatch):
    entry = own_shards / "entries" / "stage-0002-part-000.json"
    hidden = entry.rename(entry.with_suffix(".hidden"))
    reader, begun = open_shards(own_shards), []

    def begin(reader, address):
        begun.append(address)
        return load(reader, address)

    monkeypatch.setattr("trainer.loader.load", begin)
    addresses = [(1, 0, 0), (1, 0, 1), (2, 0, 0)]
    batches = read_ahead(reader, addresses, 2, is_there=lambda a: not reader.awaited_parts(a))
    for address in addresses[:2]:
        assert next(batches).address == address
    time.sleep(0.1)
    assert sorted(begun) == addresses[:2]
    hidden.rename(entry)
    assert [batch.address for batch in batches] == addresses[2:]


def test_a_run_that_waits_for_its_folder_stops_when_its_time_is_up(
    tiny_yaml, run_command, arguments, tmp_path
):
    out = tmp_path / "run"
    told = run_command(
        *arguments(tiny_yaml, tmp_path / "nowhere", out, "train.follow=true", "train.max_seconds=1")
    )
    assert "asked to stop before" in told.stdout
    assert not out.exists()
