"""Checkpoints that are out of sight, of another version, or on a disk that reads nothing now."""

import errno
import itertools
import json
import multiprocessing
import os
import shutil
import signal
from functools import partial

import pytest
import torch

import trainer.step
from prior_gen.generator import generate_shards
from puicl_config import InputError, load_config, sha256_of
from shard_io import PartId, open_shards
from trainer.begin import begin_or_resume
from trainer.checkpoint import checkpoints, load_checkpoint, newest_whole
from trainer.cli import _resolve
from trainer.data import DataChain
from trainer.fit import fit
from trainer.ledger import Ledger
from trainer.loader import read_ahead
from trainer.run_folder import check_nothing_lost
from trainer.state import TrainState
from trainer.world import World


def test_a_checkpoint_that_cannot_be_read_now_is_not_called_damaged(
    reference_run, tmp_path, monkeypatch
):
    folder = tmp_path / "checkpoints"
    shutil.copytree(reference_run / "checkpoints", folder)
    newest = checkpoints(folder)[-1]
    about = json.loads((newest / "state.json").read_text())
    older = {name: value for name, value in about.items() if name != "state_digest"}
    (newest / "state.json").write_text(json.dumps(older))
    assert load_checkpoint(newest)[0].step == 18
    newer = older | {"of_later": 1}
    newer["state_digest"] = sha256_of(newer)
    (newest / "state.json").write_text(json.dumps(newer))
    with pytest.raises(InputError, match=r"is of a newer version of puicl: it has of_later"):
        newest_whole(folder)

    def refuse(*_, **__):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    (newest / "state.json").write_text(json.dumps(about))
    monkeypatch.setattr("trainer.checkpoint.load_file", refuse)
    with pytest.raises(InputError, match=r"cannot be read: too many open files; it may be whole"):
        newest_whole(folder)
    monkeypatch.setattr("pathlib.Path.read_text", refuse)
    with pytest.raises(InputError, match=r"cannot be read: too many open files; it may be whole"):
        newest_whole(folder)


def test_a_run_whose_checkpoints_are_out_of_sight_is_not_begun_anew(reference_run, tmp_path):
    run, away = tmp_path / "run", tmp_path / "away"
    shutil.copytree(reference_run, run)
    shutil.move(run / "checkpoints", away)
    with pytest.raises(InputError, match="holds a run's weights and none of its checkpoints"):
        check_nothing_lost(run)
    (run / "model.safetensors").unlink()
    with pytest.raises(InputError, match="holds the record of 18 steps and no checkpoint"):
        check_nothing_lost(run)
    (run / "checkpoints").symlink_to(tmp_path / "unmounted")
    with pytest.raises(InputError, match="checkpoints is a link to nothing: put its checkpoints"):
        check_nothing_lost(run)
    # Killed before its first checkpoint, a run has lost nothing; nor has one that was never begun.
    (run / "checkpoints").unlink()
    lines = (run / "ledger.jsonl").read_text().splitlines(keepends=True)
    (run / "ledger.jsonl").write_text("".join(lines[:5]))  # one is written every 5 steps
    check_nothing_lost(run)
    check_nothing_lost(tmp_path / "none")


def test_a_loader_process_that_is_killed_ends_the_run_with_a_sentence(all_shards):
    batches = read_ahead(
        open_shards(all_shards),
        [(1, 0, index % 4) for index in range(40)],
        threads=0,
        processes=1,
        open_again=partial(open_shards, all_shards),
    )
    next(batches)
    (child,) = [p for p in multiprocessing.active_children() if p.name.startswith("SpawnProcess")]
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(InputError, match="a loader process was killed from outside"):
        list(batches)


def test_other_held_out_tasks_than_before_are_told(
    tiny_yaml, all_shards, tiny, run_command, tmp_path, arguments
):
    heldout, out = tmp_path / "heldout", tmp_path / "run"
    evaluated = [f"train.heldout={heldout}", "train.heldout_every=2"]
    generate_shards(tiny, heldout, [1], jobs=1, split="heldout")
    run_command(*arguments(tiny_yaml, all_shards, out, *evaluated, "train.max_steps=2"))
    same = run_command(*arguments(tiny_yaml, all_shards, out, *evaluated, "train.max_steps=4"))
    assert "the held-out tasks are not those" not in same.stdout
    generate_shards(tiny, heldout, [2], jobs=1, split="heldout")
    done = run_command(*arguments(tiny_yaml, all_shards, out, *evaluated, "train.max_steps=6"))
    assert "note: the held-out tasks are not those used up to step 4" in done.stdout


@pytest.mark.parametrize("processes", [1, 2])
def test_steps_before_a_damaged_part_are_saved_and_the_run_goes_on_once_it_is_mended(
    tiny_yaml, own_shards, reference_run, run_command, tmp_path, arguments, run_bytes, processes
):
    out = tmp_path / "run"
    damaged = own_shards / open_shards(own_shards).entry(PartId(2, 2)).files[-1]["path"]
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    command = arguments(tiny_yaml, own_shards, out, processes=processes)
    done = run_command(*command, check=False)
    assert done.returncode != 0
    assert "does not match its SHA-256" in done.stderr
    steps = len((out / "ledger.jsonl").read_text().splitlines())
    assert steps % 5  # no step that is saved in any case
    assert checkpoints(out / "checkpoints")[-1].name == f"step-{steps:08}"
    damaged.write_bytes(whole)
    run_command(*command)
    assert run_bytes(out) == run_bytes(reference_run)


def test_steps_are_saved_where_another_process_goes_while_held_out_tasks_are_looked_at(
    tiny_yaml, tiny, all_shards, tmp_path, monkeypatch
):
    generate_shards(tiny, tmp_path / "heldout", [1], jobs=1, split="heldout")
    options = [f"train.heldout={tmp_path / 'heldout'}", "train.heldout_every=4"]
    config = _resolve(load_config(tiny_yaml, options), "cpu")

    def gone(*_):
        raise InputError("another process of this run stopped")

    monkeypatch.setattr("trainer.heldout.HeldoutSet.evaluate", gone)
    with pytest.raises(InputError, match="another process"):
        fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    assert [path.name for path in checkpoints(tmp_path / "run" / "checkpoints")] == [
        "step-00000004"
    ]


def test_steps_are_saved_where_the_disk_fails_to_read_a_shard(
    tiny_yaml, all_shards, tmp_path, monkeypatch
):
    whole = trainer.step.read_ahead

    def failing(*given, **options):
        yield from itertools.islice(whole(*given, **options), 3 * 4)  # of three steps
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("trainer.step.read_ahead", failing)
    config = _resolve(load_config(tiny_yaml), "cpu")
    with pytest.raises(OSError, match="Input/output error"):
        fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    assert [path.name for path in checkpoints(tmp_path / "run" / "checkpoints")] == [
        "step-00000003"
    ]


def test_a_damaged_checkpoint_is_set_aside_by_the_first_process_alone(
    reference_run, tiny, all_shards, tmp_path
):
    run, config = shutil.copytree(reference_run, tmp_path / "run"), _resolve(tiny, "cpu")
    newest = checkpoints(run / "checkpoints")[-1]
    (newest / "state.json").unlink()
    for rank, there in ((1, True), (0, False)):
        world = World(rank, 2, torch.device("cpu"))
        state = TrainState(config, world.device)
        chain = DataChain(config, open_shards(all_shards))
        begin_or_resume(config, run, state, chain, world, lambda _: None)
        assert (state.step, newest.exists()) == (15, there)


def test_no_checkpoint_is_ahead_of_a_record_that_could_not_be_written(
    tiny_yaml, all_shards, tmp_path, monkeypatch
):
    config, written = _resolve(load_config(tiny_yaml), "cpu"), Ledger.write

    def full(self, step, *rest):
        if step == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(self, step, *rest)

    monkeypatch.setattr(Ledger, "write", full)
    with pytest.raises(OSError, match="No space left"):
        fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    assert checkpoints(tmp_path / "run" / "checkpoints") == []
