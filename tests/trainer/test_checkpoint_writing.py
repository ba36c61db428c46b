"""A checkpoint is written whole, replaces what was there, and is told from what only looks so."""

import os
import stat

import pytest
import torch

from puicl_config import InputError
from trainer.checkpoint import (
    TENSORS,
    CheckpointState,
    DamagedCheckpoint,
    checkpoints,
    load_checkpoint,
    read_state,
    save_checkpoint,
    set_aside,
    thin_checkpoints,
)
from trainer.fit import fit
from trainer.world import World


def saved(folder, step, value=0.0):
    about = CheckpointState(step, "run", "plan", "data")
    return save_checkpoint(folder, about, {"a": torch.full((3,), value)})


@pytest.fixture
def durable(monkeypatch):
    """What became durable, by inode and a file's size at that moment, and when it was renamed."""
    done = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        about = os.fstat(descriptor)
        done.append((about.st_ino, about.st_size if stat.S_ISREG(about.st_mode) else None))
        fsync(descriptor)

    def renamed(source, target, **options):
        replace(source, target, **options)
        done.append("renamed")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    return done


def test_it_has_its_name_only_once_all_its_bytes_are_durable(tmp_path, durable):
    """So a power cut leaves it whole, or not at all; and the name is durable, too."""
    path = saved(tmp_path, 3)
    files = {(file.stat().st_ino, file.stat().st_size) for file in path.iterdir()}
    assert len(files) == 2
    assert set(durable[:2]) == files
    assert durable[2:] == [(path.stat().st_ino, None), "renamed", (tmp_path.stat().st_ino, None)]


def test_the_steps_it_has_made_are_durable_before_it_is_there(
    tiny, all_shards, tmp_path, durable, monkeypatch
):
    """Else ledger and TensorBoard would lack steps that nobody makes again."""
    monkeypatch.setattr("trainer.run_log.SummaryWriter.flush", lambda _: durable.append("figures"))
    changes = {"device": "cpu", "precision": "float32", "max_steps": 1}
    config = tiny.model_copy(update={"train": tiny.train.model_copy(update=changes)})
    fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    ledger = (tmp_path / "run" / "ledger.jsonl").stat()
    (path,) = checkpoints(tmp_path / "run" / "checkpoints")
    tensors = (path / "state.safetensors").stat()
    written = [durable.index((file.st_ino, file.st_size)) for file in (ledger, tensors)]
    assert written == sorted(written)
    figures = (tmp_path / "run" / "metrics.jsonl").stat()  # at the end, as nothing depends on them
    assert (figures.st_ino, figures.st_size) in durable
    assert durable.index("figures") < written[-1]


def test_saved_again_it_replaces_and_what_a_killed_run_left_does_not_come_along(tmp_path):
    for value in (1.0, 2.0):
        left = tmp_path / ".step-00000003.tmp"
        left.mkdir()
        (left / "half").touch()
        path = saved(tmp_path, 3, value)
        assert sorted(each.name for each in path.iterdir()) == ["state.json", "state.safetensors"]
        assert load_checkpoint(path)[1]["a"].tolist() == [value] * 3
        assert list(tmp_path.iterdir()) == [path]


def test_the_newest_are_kept_in_whatever_order_a_folder_lists_them(tmp_path):
    steps = [100, 9, 20, 90_000, 3, 1000, 8, 200, 7, 10]
    others = ["step-1", "step-00000004.old", "damaged-step-00000005", "step-000000006"]
    for name in [f"step-{step:08d}" for step in steps] + others:
        (tmp_path / name).mkdir()
    assert [int(path.name[5:]) for path in checkpoints(tmp_path)] == sorted(steps)
    thin_checkpoints(tmp_path, 2)
    kept = {path.name for path in tmp_path.iterdir()}
    assert kept == {"step-00001000", "step-00090000", *others}


def test_a_step_may_be_set_aside_more_than_once(tmp_path):
    for value in (1.0, 2.0):
        set_aside(saved(tmp_path, 3, value))
    (aside,) = tmp_path.iterdir()
    assert aside.name == "damaged-step-00000003"
    assert checkpoints(tmp_path) == []
    assert load_checkpoint(aside)[1]["a"][0] == 2


def test_a_folder_of_something_else_is_called_no_checkpoint_and_a_checkpoints_own_is_damaged(
    tmp_path,
):
    with pytest.raises(
        InputError, match=r"is no checkpoint: it holds no state\.json; give"
    ) as told:
        read_state(tmp_path)
    assert not isinstance(told.value, DamagedCheckpoint)
    (tmp_path / "step-00000007").mkdir()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / TENSORS).write_bytes(b"")
    (tmp_path / "step-00000008").mkdir()
    (tmp_path / "step-00000008" / "state.json").write_text("[" * 100_000)
    for name in ("step-00000007", "copy", "step-00000008"):
        with pytest.raises(DamagedCheckpoint, match="is damaged"):
            read_state(tmp_path / name)
