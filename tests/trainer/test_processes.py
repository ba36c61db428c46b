"""Processes that do not see the same files, as on nodes with disks of their own."""

import shutil
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from prior_gen.generator import generate_shards
from puicl_config import InputError, load_config
from shard_io import PartId, open_shards, publish_part, slice_shards
from trainer import cli
from trainer.agreement import check_same_start, differences
from trainer.checkpoint import checkpoints
from trainer.data import DataChain, identity
from trainer.environment import check_same_environment, describe_environment
from trainer.fit import fit
from trainer.world import World, join_world

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"
# "RANK" in an argument is the process's own.
APART = """
import os, sys

sys.argv = [argument.replace("RANK", os.environ["RANK"]) for argument in sys.argv]
from trainer.cli import main

main()
"""


@pytest.fixture
def run_apart(run_command, arguments, tmp_path):
    """Two processes of one run, each with its own folders; returns what they print as they end.

    Called with a config, what of it is overridden and how they are launched.
    """
    program = tmp_path / "apart.py"
    program.write_text(APART, encoding="utf-8")

    def run(config, *overrides, launch=run_command):
        places = (tmp_path / "shards-RANK", tmp_path / "run-RANK")
        command = arguments(config, *places, *overrides, processes=2)
        done = launch(*(program if part == MAIN else part for part in command), check=False)
        assert done.returncode != 0
        return done.stderr

    return run


def test_what_differs_is_told_with_the_processes_of_each_value():
    alike = {"step": "5", "weights": "ab"}
    assert differences([alike] * 3) == []
    assert differences([alike, {**alike, "weights": "cd"}, alike, alike]) == [
        "weights is ab (processes 0,2-3), cd (process 1)"
    ]
    assert differences([alike, {"step": "0", "weights": "cd"}]) == [
        "step is 5 (process 0), 0 (process 1)",
        "weights is ab (process 0), cd (process 1)",
    ]


class TwoThreads:
    """A world of two processes that are threads of this one."""

    size, device = 2, torch.device("cpu")

    def __init__(self):
        self._rows, self._all_here = {}, threading.Barrier(2)

    def gather(self, rows, count):
        self._rows[threading.current_thread().name] = rows
        self._all_here.wait(10)
        gathered = torch.cat([self._rows[name] for name in sorted(self._rows)])
        self._all_here.wait(10)
        return gathered[:count]

    def start(self, *starts, check=check_same_start):
        """What each of the two is told: the error's sentence or ""."""
        said = {}

        def run(rank):
            said[rank] = ""
            try:
                check(self, starts[rank])
            except InputError as error:
                said[rank] = str(error)

        threads = [threading.Thread(target=run, args=(rank,), name=str(rank)) for rank in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return said


def test_processes_compare_texts_of_any_length_and_all_say_what_differs():
    one = {"step": 5, "shards' slice": "none", "torch": "2.11"}
    assert TwoThreads().start(one, dict(one)) == {0: "", 1: ""}
    said = TwoThreads().start(one, {**one, "shards' slice": "n_features \u2264 3" * 20})
    assert said[0] == said[1]
    assert "do not start alike: shards' slice is none (process 0), n_features \u2264 3n_" in said[0]
    assert "torch" not in said[0]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"torch": "2.1"}, "torch is HERE (process 0), 2.1 (process 1)"),
        ({"instruction_sets": ["avx"]}, "instruction_sets is HERE (process 0), ['avx'] (process"),
        ({"cpu_capability": "AVX9"}, "cpu_capability is HERE (process 0), AVX9 (process 1)"),
        ({"machine_code": "other"}, "machine_code is HERE (process 0), other (process 1)"),
        ({"tile_code": "other"}, "tile_code is HERE (process 0), other (process 1)"),
        ({"git_commit": "abc-dirty"}, "git_commit is HERE (process 0), abc-dirty (process 1)"),
        ({"threads_per_process": 2}, "threads_per_process is 1 (process 0), 2 (process 1)"),
        ({"variables": {"MKL_CBWR": "AVX2"}}, "MKL_CBWR is not set (process 0), AVX2 (process 1)"),
        ({"python": "3.1", "zarr": "3.9"}, None),
        ({"cpu": "another"}, "note: cpu is HERE (process 0), another (process 1): if these"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, dict) else "",
)
def test_processes_that_compute_otherwise_do_not_start(changed, says, monkeypatch):
    monkeypatch.delenv("MKL_CBWR", raising=False)
    here = describe_environment(World(0, 1, torch.device("cpu")), 1)
    notes = []

    def check(world, environment):
        check_same_environment(world, environment, notes.append)

    said = TwoThreads().start(here, {**here, **changed}, check=check)
    assert said[0] == said[1]
    if says is None or says.startswith("note"):
        assert said[0] == ""
        said = {0: "".join(notes)}
    else:
        assert said[0].startswith("the processes of this run compute differently: ")
        assert not notes
    assert (says or "").replace("HERE", str(here[next(iter(changed))])) in said[0]
    assert bool(says) == bool(said[0])


@pytest.fixture(scope="module")
def other_shards(tiny_yaml, all_shards, tmp_path_factory):
    """Name to a folder of shards that is not `all_shards`, by what of it differs."""
    place = tmp_path_factory.mktemp("other")
    slice_shards(all_shards, "d <= 3", place / "slice")
    wide = load_config(tiny_yaml, ["shards.x_dtype=float32"])
    generate_shards(wide, place / "wide", range(1, 6), jobs=1)
    shutil.copytree(all_shards, place / "forged")
    reader = open_shards(place / "forged")
    stored = reader.part(PartId(2, 0))
    forged = [stored[position] for position in range(len(stored))]
    forged[0].y[0, 0] ^= 1
    manifest = reader.manifest
    publish_part(place / "forged", PartId(2, 0), forged, manifest.storage, manifest.plan_id)
    return place


@pytest.mark.parametrize(
    ("name", "differs"),
    [
        ("slice", {"shards' slice"}),
        ("wide", {"shards' x_dtype", "shards' content"}),
        ("forged", {"shards' content"}),
    ],
)
def test_processes_that_were_given_other_shards_of_the_same_plan_differ_in(
    name, differs, tiny, all_shards, other_shards
):
    ours, theirs = (
        identity(tiny, open_shards(folder), 0, 18) for folder in (all_shards, other_shards / name)
    )
    assert {key for key in ours if ours[key] != theirs[key]} == differs
    assert identity(tiny, open_shards(all_shards), 0, 18) == ours
    assert identity(tiny, open_shards(other_shards / "forged"), 0, 3) == identity(
        tiny, open_shards(all_shards), 0, 3
    )  # stage 1 alone


def test_what_a_run_has_read_is_known_at_every_later_step(tiny, all_shards, other_shards):
    """Of a part that only steps 4 and 5 read: not before, and ever after."""
    ours, theirs = (
        DataChain(tiny, open_shards(folder)) for folder in (all_shards, other_shards / "forged")
    )
    same = [ours.consume(step) == theirs.consume(step) for step in range(18)]
    assert same == [True] * 4 + [False] * 14


def test_a_run_is_told_from_which_step_on_its_shards_are_others(
    tiny, other_shards, reference_run, tmp_path
):
    run = shutil.copytree(reference_run, tmp_path / "run")
    alone = World(0, 1, torch.device("cpu"))
    with pytest.raises(InputError, match=r"first at step 4, which reads stage-0002-part-000$"):
        fit(cli._resolve(tiny, "cpu"), other_shards / "forged", run, alone)
    # Where the record of these steps is lost, it is told without: later ones say nothing of them.
    shutil.rmtree(checkpoints(run / "checkpoints")[-1])
    lines = (run / "ledger.jsonl").read_text().splitlines(keepends=True)
    (run / "ledger.jsonl").write_text("".join(lines[15:]))
    with pytest.raises(InputError, match=r"trained on: their content digests differ$"):
        fit(cli._resolve(tiny, "cpu"), other_shards / "forged", run, alone)


def test_processes_that_were_given_other_settings_do_not_start_alike(
    tiny, all_shards, tmp_path, monkeypatch
):
    def start_of(**changes):
        train = tiny.train.model_copy(update=changes)
        config = cli._resolve(tiny.model_copy(update={"train": train}), "cpu")
        with pytest.raises(InputError, match="caught"):
            fit(config, all_shards, tmp_path / "run", World(0, 2, torch.device("cpu")))
        return starts.pop()

    def caught(world, start):
        starts.append(start)
        raise InputError("caught")

    starts: list[dict] = []
    monkeypatch.setattr("trainer.fit.check_same_environment", lambda *_: None)
    monkeypatch.setattr("trainer.fit.check_same_start", caught)
    here = start_of()
    for changes, differ in (
        ({"loader_threads": 5}, set()),
        ({"clip_norm": 2.0}, {"config"}),
        ({"seed": 1}, {"config", "weights"}),
        ({"max_steps": 3}, {"last step", "shards' content"}),
    ):
        there = start_of(**changes)
        assert {key for key in here if here[key] != there[key]} == differ


def test_processes_that_stand_elsewhere_or_see_other_shards_do_not_start(
    tiny_yaml, tiny, all_shards, reference_run, run_apart, tmp_path
):
    shutil.copytree(reference_run, tmp_path / "run-0")
    shutil.rmtree(checkpoints(tmp_path / "run-0" / "checkpoints")[-1])
    (tmp_path / "shards-0").symlink_to(all_shards)
    generate_shards(tiny, tmp_path / "shards-1", [1, 2, 3], jobs=1)
    ledger = (tmp_path / "run-0" / "ledger.jsonl").read_bytes()
    for name, stage in (("heldout-0", 1), ("heldout-1", 2)):
        generate_shards(tiny, tmp_path / name, [stage], split="heldout", jobs=1)
    said = run_apart(tiny_yaml, f"train.heldout={tmp_path / 'heldout-RANK'}")
    assert "error: the processes do not start alike: step is 15 (process 0), 0 (process 1)" in said
    assert "; last step is 18 (process 0), 12 (process 1); weights is " in said
    assert "config is" not in said
    assert "; shards' content is " in said
    assert "; held-out set is " in said.split("; all of them")[0]
    assert (tmp_path / "run-0" / "ledger.jsonl").read_bytes() == ledger
    assert not (tmp_path / "run-1").exists()


@pytest.mark.parametrize(("rank", "says"), [("0", "error: no"), ("3", "error (process 3): no")])
def test_every_process_says_its_error(rank, says, monkeypatch, capsys):
    def refuse(**_):
        raise InputError("no")

    monkeypatch.setattr(cli, "app", refuse)
    monkeypatch.setenv("RANK", rank)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    assert capsys.readouterr().err == says + "\n"


def test_an_error_of_another_process_than_the_first_is_seen(
    tiny_yaml, all_shards, run_apart, run_afresh, tmp_path
):
    (tmp_path / "shards-0").symlink_to(all_shards)
    said = run_apart(tiny_yaml, launch=run_afresh)
    assert f"error (process 1): {tmp_path / 'shards-1'} holds no shards" in said
    assert "error: another process of this run stopped; its own message" in said
    assert "[rank" not in said  # torch's mark of a traceback
    assert not (tmp_path / "run-0").exists()


def test_a_process_that_ends_while_others_join_it_is_one_sentence(monkeypatch):
    meeting = [dist.TCPStore("localhost", 0, 2, is_master=True, wait_for_workers=False)]
    place = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(meeting[0].port)}
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", **place}.items():
        monkeypatch.setenv(name, value)
    before = meeting[0].num_keys()

    def end():  # as the first process would, once this one has come and waits for it
        while meeting[0].num_keys() == before:
            time.sleep(0.05)
        meeting.clear()

    first = threading.Thread(target=end)
    first.start()
    with pytest.raises(InputError, match="processes of this run could not connect to") as no:
        join_world("cpu")
    first.join()
    told = str(no.value)
    assert told.endswith("its own message, if it left one, says why; start the same command again")
    assert "\n" not in told
    monkeypatch.delenv("MASTER_ADDR")
    with pytest.raises(InputError, match=r"to each other \(.*MASTER_ADDR.*\): if another"):
        join_world("cpu")


@pytest.mark.parametrize(
    ("gpus", "says"),
    [(0, "torch sees no GPU here"), (2, "process 2 of this node has no GPU: there are 2; start")],
)
def test_a_process_without_a_gpu_of_its_own_is_refused(gpus, says, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "2")
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpus > 0)
    monkeypatch.setattr("torch.cuda.device_count", lambda: gpus)
    with pytest.raises(InputError, match=says):
        join_world("cuda")


@pytest.mark.parametrize(
    ("told", "lost"),
    [
        ("gloo/transport/tcp/pair.cc:538] Connection closed by peer [10.0.0.1]:7", True),
        ("gloo/transport/tcp/pair.cc:537] Read error [10.0.0.1]:7: Connection reset by peer", True),
        ("gloo/transport/tcp/pair.cc:368] writev [10.0.0.1]:7: Broken pipe", True),
        ("gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 16 vs 8", False),
        ("CUDA error: device-side assert triggered", False),
    ],
)
def test_only_a_lost_process_is_told_as_one(told, lost, monkeypatch):
    def fail(*_):
        raise RuntimeError(told)

    monkeypatch.setattr("torch.distributed.all_gather", fail)
    world = World(0, 2, torch.device("cpu"))
    with pytest.raises(InputError if lost else RuntimeError) as raised:
        world.gather(torch.zeros(1, 1), 2)
    assert ("another process" in str(raised.value)) == lost
