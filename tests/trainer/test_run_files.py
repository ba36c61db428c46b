"""What a run keeps in its folder, on disks that misbehave and beside processes that are killed."""

import errno
import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import uuid

import pytest
import torch

import trainer.checkpoint
import trainer.cli
import trainer.environment
import trainer.run_folder as run_folder
from puicl_config import InputError, atomic
from trainer.checkpoint import (
    CheckpointState,
    checkpoints,
    newest_whole,
    save_checkpoint,
    thin_checkpoints,
)
from trainer.environment import describe_environment, record_environment
from trainer.fit import fit
from trainer.ledger import Ledger, read_ledger
from trainer.metrics import Metrics
from trainer.world import World

ALONE = World(0, 1, torch.device("cpu"))


def test_the_environment_names_what_chooses_other_instructions(monkeypatch):
    variables = {"DNNL_MAX_CPU_ISA": "AVX2", "OMP_DYNAMIC": "true", "OMP_THREAD_LIMIT": "1"}
    variables |= {"OMP_MAX_ACTIVE_LEVELS": "0", "MKL_DYNAMIC": "FALSE"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    environment = describe_environment(ALONE, 3)
    assert environment["threads_per_process"] == 3
    assert environment["variables"].items() >= variables.items()
    assert environment["llvmlite"][0].isdigit()
    assert environment["machine_code"] in (True, False)


@pytest.mark.parametrize(
    ("processor", "found"),
    [
        (
            "vendor_id\t: GenuineIntel\nflags\t\t: fpu sse2 avx2 ht\n",
            ["GenuineIntel", "avx2", "sse2"],
        ),
        ("CPU implementer\t: 0x41\nFeatures\t: fp asimd sve\n", ["0x41", "asimd", "sve"]),
    ],
)
def test_instruction_sets_are_the_first_processors_and_its_makers(monkeypatch, processor, found):
    both = f"{processor}\nvendor_id\t: Other\nflags\t: avx512f\n"
    monkeypatch.setattr(trainer.environment, "cpu_facts", lambda: both)
    assert trainer.environment._instruction_sets() == found


def test_what_an_earlier_version_did_not_record_does_not_differ(tmp_path):
    path = tmp_path / "environment.json"
    path.write_text(json.dumps([{"from_step": 0, "torch": "2.0"}]))
    assert record_environment(path, {"torch": "2.0", "llvmlite": "0.5"}, 3) == []
    told = record_environment(path, {"torch": "2.1", "llvmlite": "0.5"}, 3)
    assert told == ["torch: 2.0 before, 2.1 now"]
    assert record_environment(path, {"torch": "2.1", "llvmlite": "0.5"}, 4) == []
    assert [stretch["from_step"] for stretch in json.loads(path.read_text())] == [0, 3]


def test_a_run_from_before_there_were_tiles_had_none(tmp_path):
    path = tmp_path / "environment.json"
    path.write_text(json.dumps([{"from_step": 0, "torch": "2.0"}]))
    assert record_environment(path, {"torch": "2.0", "tile_code": False}, 3) == []
    told = record_environment(path, {"torch": "2.0", "tile_code": True}, 3)
    assert told == ["tile_code: False before, True now"]


def write_steps(path, steps):
    ledger = Ledger(path, 0)
    for step in steps:
        ledger.write(step, 0.5, 1.5, 1e-4, [(1, step, 0)], "0" * 64, None)
    ledger.close()


def test_damage_after_the_checkpoint_is_cut_off_and_damage_before_it_is_told(tmp_path):
    path = tmp_path / "ledger.jsonl"
    write_steps(path, range(5))
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*whole[:3], "\0" * 40 + "\n", whole[4]]))
    ledger = Ledger(path, 3)
    ledger.close()
    assert ledger.lacks == 0
    assert path.read_text() == "".join(whole[:3])
    path.write_text("".join([whole[0], "\0" * 40 + "\n", *whole[2:]]))
    with pytest.raises(InputError, match="line 2 is damaged"):
        Ledger(path, 4)
    assert len(path.read_text().splitlines()) == 5


def test_damage_of_the_only_step_before_the_checkpoint_is_told(tmp_path):
    path = tmp_path / "ledger.jsonl"
    write_steps(path, range(2))
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("\0" * 40 + "\n" + whole[1])
    with pytest.raises(InputError, match="line 1 is damaged"):
        Ledger(path, 1)
    assert len(path.read_text().splitlines()) == 2
    Ledger(path, 0).close()  # from the start nothing is kept
    assert path.read_text() == ""


def test_bytes_that_are_no_text_are_damage_like_any_other(tmp_path):
    path = tmp_path / "ledger.jsonl"
    write_steps(path, range(3))
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(whole[0] + b"\xff\xfe\n" + whole[2])
    with pytest.raises(InputError, match="line 2 is damaged"):
        Ledger(path, 3)


@pytest.mark.parametrize("checkpoint", [25, 29, 40])
def test_damaged_metrics_are_cut_off_and_told_wherever_the_checkpoint_is(tmp_path, checkpoint):
    path = tmp_path / "metrics.jsonl"
    lines = [json.dumps({"step": step, "seconds": 2.0 * step}) + "\n" for step in (10, 20, 25)]
    path.write_text("".join([*lines, "\0\n", lines[0].replace("10", "30")]))
    metrics = Metrics(path, checkpoint)
    assert 50 <= metrics.seconds < 60
    assert metrics.damage == f"{path}: line 4 is damaged"
    metrics.close()
    assert [line["step"] for line in read_ledger(path)] == [10, 20, 25]
    whole = Metrics(path, checkpoint)
    whole.close()
    assert whole.damage is None


def test_whoever_holds_a_run_is_named(tmp_path):
    (tmp_path / ".lock").write_text(
        "process 1 on a-host-with-a-longer-name-than-this-one-has\n" * 2
    )
    with run_folder.lock_run(tmp_path, print):
        for _ in range(2):
            with pytest.raises(InputError, match="another trainer is writing to ") as refused:
                run_folder.lock_run(tmp_path, print)
            here = f"(process {os.getpid()} on {socket.gethostname()}); give another --out"
            assert str(refused.value).endswith(here)


def test_a_run_whose_lock_leads_elsewhere_is_refused(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(InputError, match=r"\.lock is a symbolic link"):
        run_folder.lock_run(tmp_path, print)
    assert (tmp_path / "precious").read_text() == "kept"


def test_what_a_killed_trainer_left_half_written_is_removed_by_who_holds_the_lock(tmp_path):
    half = [f".{name}.{'0a' * 16}" for name in ("metrics.jsonl", "config.yaml", "environment.json")]
    half.append(f".ledger.jsonl.{'0b' * 16}")
    half += [f".model.{kind}.trainer.{'0c' * 16}" for kind in ("safetensors", "json")]
    kept = ["ledger.jsonl", ".ledger.jsonl.old", f"ledger.jsonl.{'0a' * 16}"]
    kept.append(f".model.safetensors.{'0d' * 16}")  # of `puicl average`, say, which may be at work
    for name in half + kept:
        (tmp_path / name).touch()
    run_folder.lock_run(tmp_path, print).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([".lock", *kept])


def test_weights_half_written_by_a_killed_trainer_are_swept_when_it_goes_on(
    tiny, all_shards, tmp_path, monkeypatch
):
    config, run = trainer.cli._resolve(tiny, "cpu"), tmp_path / "run"
    config = config.model_copy(update={"train": config.train.model_copy(update={"max_steps": 1})})

    def leaving_half(path, content):  # beside it, as an earlier start that was killed would have
        whole(path, content)
        if path.name.startswith(".model."):
            digits = uuid.uuid4().hex
            path.with_name(path.name[: -len(digits)] + digits).write_bytes(content[:9])

    whole = atomic.write_synced
    monkeypatch.setattr(atomic, "write_synced", leaving_half)
    fit(config, all_shards, run, ALONE)
    left = [path.name for path in run.glob(".model.*")]
    assert len(left) == 2, left
    monkeypatch.undo()
    fit(config, all_shards, run, ALONE)
    assert not list(run.glob(".model.*"))
    assert (run / "model.safetensors").is_file()


# A process like the trainer's: it waits to be asked to stop, and says that it was. With "late" it
# still starts when its parent ends.
WAITS = """
import os, sys, time
from pathlib import Path
from trainer.stop import StopRequest, heed_end_of_torchrun

parent = os.getppid()
with StopRequest(None) as asked:
    if sys.argv[2] != "late":
        heed_end_of_torchrun()
    Path(sys.argv[1] + "/here").touch()
    deadline = time.monotonic() + 30
    if sys.argv[2] == "late":
        while os.getppid() == parent and time.monotonic() < deadline:
            time.sleep(0.05)
        heed_end_of_torchrun()
        deadline = time.monotonic() + 5
    while not asked() and time.monotonic() < deadline:
        time.sleep(0.05)
    Path(sys.argv[1] + "/told").write_text(str(asked()))
"""
STARTS = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


@pytest.mark.parametrize("heeded", ["early", "late"])
def test_processes_whose_torchrun_is_killed_stop_as_by_sigterm(tmp_path, heeded):
    environment = {**os.environ, "TORCHELASTIC_RUN_ID": "none"}
    command = [sys.executable, "-c", STARTS, WAITS, str(tmp_path), heeded]
    parent = subprocess.Popen(command, env=environment)

    def appears(name):
        deadline = time.monotonic() + 60
        while not (tmp_path / name).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return (tmp_path / name).exists()

    assert appears("here")
    assert not (tmp_path / "told").exists()
    parent.kill()
    parent.wait()
    assert appears("told")
    time.sleep(0.1)
    assert (tmp_path / "told").read_text() == "True"


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EIO])
def test_a_file_system_without_locks_is_told_and_trained_on(tmp_path, monkeypatch, number):
    def no_locks(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    said: list[str] = []
    if number == errno.EIO:
        with pytest.raises(OSError, match="error"):
            run_folder.lock_run(tmp_path, said.append)
        return
    half = tmp_path / f".metrics.jsonl.{'0a' * 16}"  # of another trainer, perhaps
    half.touch()
    run_folder.lock_run(tmp_path, said.append).close()
    (told,) = said
    assert "is on a file system without locks" in told
    assert half.exists()


def test_a_checkpoint_that_cannot_be_removed_ends_no_run_and_is_none_any_more(
    tmp_path, monkeypatch
):
    for step in range(4):
        (tmp_path / f"step-{step:08d}").mkdir()

    def busy(path, **_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", busy)
        thin_checkpoints(tmp_path, 2)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-00000002", "step-00000003"]
    thin_checkpoints(tmp_path, 2)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_checkpoint_for_which_there_is_no_room_leaves_nothing_behind(tmp_path, monkeypatch):
    written = trainer.checkpoint.write_synced

    def full(path, content):
        if path.name == "state.json":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(path, content)

    monkeypatch.setattr(trainer.checkpoint, "write_synced", full)
    state = CheckpointState(3, "run", "plan", "data")
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(tmp_path, state, {"a": torch.zeros(3)})
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_another_process_has_just_set_aside_is_passed_over(tmp_path):
    state = CheckpointState(3, "run", "plan", "data")
    kept = save_checkpoint(tmp_path, state, {"a": torch.zeros(3)})
    (tmp_path / "step-00000009").symlink_to(tmp_path / "gone")
    found, damaged = newest_whole(tmp_path)
    assert found[0].step == 3
    assert [path.name for path, _ in damaged] == ["step-00000009"]
    assert kept.is_dir()


def test_a_checkpoint_may_be_gone_before_it_is_set_aside(tmp_path):
    trainer.checkpoint.set_aside(tmp_path / "step-00000009")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_not_finite_is_passed_over(tmp_path):
    for step, value in ((3, 0.0), (9, torch.nan)):
        state = CheckpointState(step, "run", "plan", "data")
        save_checkpoint(tmp_path, state, {"ema.a": torch.tensor([1.0, value])})
    found, ((path, error),) = newest_whole(tmp_path)
    assert found[0].step == 3
    assert path.name == "step-00000009"
    assert str(error).endswith("is of no use: ema.a is not finite")


def test_a_link_into_shards_is_no_way_round(own_shards, tmp_path):
    (own_shards / "below").mkdir()
    (tmp_path / "link").symlink_to(own_shards / "below")
    with pytest.raises(InputError, match="lies in the folder of shards"):
        run_folder.lock_run(tmp_path / "link", print)


@pytest.mark.parametrize("inside", ["", "run", "deep/er/run"])
def test_no_run_begins_among_shards(own_shards, inside):
    with pytest.raises(InputError, match=f"lies in the folder of shards {own_shards}, which"):
        run_folder.lock_run(own_shards / inside, print)
    assert not (own_shards / "run").exists()
    assert not (own_shards / ".lock").exists()


def test_beside_another_programs_manifest_a_run_may_begin(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    run_folder.lock_run(tmp_path / "run", print).close()
    assert (tmp_path / "run" / ".lock").read_text().startswith(f"process {os.getpid()} on ")


def test_no_run_begins_where_a_link_leads_to_nothing(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    with pytest.raises(InputError, match="link is a file, or a link to nothing; give a folder"):
        run_folder.lock_run(tmp_path / "link", print)
    assert not (tmp_path / "unmounted").exists()


def test_an_empty_config_is_told_as_such(tiny, tmp_path):
    (tmp_path / "config.yaml").touch()
    with pytest.raises(InputError, match=r"config\.yaml is empty: put the run's config back, or"):
        run_folder.check_same_run(tmp_path, tiny)


def test_neither_a_name_nor_extensions_that_no_microbatch_has_make_another_run(tiny):
    extensions = tiny.prior.extensions.model_copy(update={"shallow": 0.5})
    prior = tiny.prior.model_copy(update={"extensions": extensions})
    other = tiny.model_copy(update={"name": "another", "prior": prior})
    assert run_folder.config_differences(tiny, other) == []


def test_what_a_killed_run_left_half_saved_is_gone_as_soon_as_it_goes_on(
    tiny, all_shards, tmp_path
):
    """Before anything is written: it may be what fills the disk."""
    config, run = trainer.cli._resolve(tiny, "cpu"), tmp_path / "run"
    config = config.model_copy(update={"train": config.train.model_copy(update={"max_steps": 1})})
    fit(config, all_shards, run, ALONE)
    (run / "checkpoints" / ".step-00000002.tmp").mkdir()
    fit(config, all_shards, run, ALONE)  # which saves nothing
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000001"]


def test_a_run_that_was_begun_among_shards_goes_on_there(own_shards):
    run = own_shards / "run"
    run.mkdir()
    (run / "config.yaml").write_text("name: x\n")
    run_folder.lock_run(run, print).close()
    assert (run / ".lock").read_text().startswith(f"process {os.getpid()} on ")
