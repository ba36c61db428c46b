"""What a run records and refuses: ledgers, held-out figures, and full disks."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from prior_gen.generator import generate_shards
from puicl_config import InputError, load_config
from trainer import compare_runs, export_weights
from trainer.checkpoint import checkpoints
from trainer.environment import record_environment
from trainer.fit import fit
from trainer.ledger import kept_lines
from trainer.world import World

MAIN = Path(__file__).resolve().parents[2] / "trainer" / "main.py"


def test_a_runs_config_says_what_its_shards_are(tiny, tiny_yaml, run_command, arguments, tmp_path):
    wide = tiny.shards.model_copy(update={"x_dtype": "float32", "format": "webdataset"})
    generate_shards(tiny.model_copy(update={"shards": wide}), tmp_path / "wide", [1], jobs=1)
    command = arguments(tiny_yaml, tmp_path / "wide", tmp_path / "run", "train.max_steps=1")
    for _ in range(2):  # and the same command goes on
        done = run_command(*command)
        assert load_config(tmp_path / "run" / "config.yaml").shards == wide
        assert "holds x as float32, and is read as such: shards.x_dtype=float16" in done.stdout


def test_a_lost_ledger_is_told_and_its_rest_compared_by_step(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments
):
    run = tmp_path / "run"
    shutil.copytree(reference_run, run)
    (run / "ledger.jsonl").unlink()
    shutil.rmtree(checkpoints(run / "checkpoints")[-1])
    stood = int(checkpoints(run / "checkpoints")[-1].name[-8:])
    with (run / "metrics.jsonl").open("r+") as file:
        file.write("\0")
    done = run_command(*arguments(tiny_yaml, all_shards, run))
    assert "metrics.jsonl: line 1 is damaged; it and the figures after it are cut" in done.stdout
    assert f"note: ledger.jsonl lacks {stood} of the {stood} steps" in done.stdout
    result = compare_runs(reference_run, run)
    assert (result.equal, result.steps) == (True, 18 - stood)
    with pytest.raises(InputError, match="lacks some of the first 3 steps"):
        export_weights(run, all_shards, tmp_path / "w.safetensors")
    whole = (reference_run / "ledger.jsonl").read_text().splitlines(keepends=True)
    (run / "ledger.jsonl").write_text(whole[0] + "nonsense\n" + whole[2])
    with pytest.raises(InputError, match=r"ledger.jsonl: line 2 is damaged"):
        compare_runs(run, run)
    (run / "environment.json").write_text("")
    done = run_command(*arguments(tiny_yaml, all_shards, run), check=False)
    assert done.returncode == 2
    assert "environment.json is damaged" in done.stderr


@pytest.mark.parametrize("content", ["", "{}", "[1]", "null"])
def test_a_list_of_environments_that_is_none_is_damaged(tmp_path, content):
    (tmp_path / "environment.json").write_text(content)
    with pytest.raises(InputError, match=r"environment.json is damaged: put it back"):
        record_environment(tmp_path / "environment.json", {"torch": "2"}, 0)


@pytest.mark.parametrize("line", ["{}", "[]", "1", '{"step": "1"}', '{"step": null}'])
def test_a_line_without_the_number_of_a_step_is_damaged(tmp_path, line):
    (tmp_path / "ledger.jsonl").write_text('{"step": 0}\n' + line + "\n")
    lines, damage = kept_lines(tmp_path / "ledger.jsonl", 5)
    assert lines == [{"step": 0}]
    assert "line 2 is damaged" in str(damage)


def test_a_finished_run_started_again_records_nothing_twice(
    tiny_yaml, tiny, all_shards, run_command, tmp_path, arguments
):
    generate_shards(tiny, tmp_path / "heldout", [1], split="heldout", jobs=1)
    command = arguments(
        tiny_yaml, all_shards, tmp_path / "run", f"train.heldout={tmp_path / 'heldout'}"
    )
    run_command(*command)
    before = [line["step"] for line in heldout_lines(tmp_path / "run")]
    newest = checkpoints(tmp_path / "run" / "checkpoints")[-1].stat()
    done = run_command(*command)
    assert checkpoints(tmp_path / "run" / "checkpoints")[-1].stat().st_ino == newest.st_ino
    assert "from step 18 to 18 on 1 process\n" in done.stdout
    assert [line["step"] for line in heldout_lines(tmp_path / "run")] == before
    assert before[-1] == 18
    done = run_command(*command, "train.max_steps=3")
    assert "stands at step 18 already, beyond train.max_steps=3" in done.stdout


# The trainer, killed as it begins step 12, two after a checkpoint.
KILLED = """
import os, signal
import trainer.step as module
from trainer.cli import main

whole = module.microbatch_gradient

def killing(state, *rest):
    if state.step == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(state, *rest)

module.microbatch_gradient = killing
main()
"""


def test_tensorboard_of_a_killed_run_has_each_figure_once(
    tiny_yaml, tiny, all_shards, run_command, tmp_path, arguments
):
    generate_shards(tiny, tmp_path / "heldout", [1], split="heldout", jobs=1)
    run, script = tmp_path / "run", tmp_path / "killed.py"
    script.write_text(KILLED)
    options = ("log_every=1", "heldout_every=5", f"heldout={tmp_path / 'heldout'}")
    options += ("digest_every=4",)
    _, *rest = arguments(tiny_yaml, all_shards, run, *(f"train.{option}" for option in options))
    done = run_command(script, *rest, check=False)
    assert done.returncode == -signal.SIGKILL
    for _ in range(2):  # and once it has ended
        run_command(MAIN, *rest)
    board = EventAccumulator(str(run / "tensorboard")).Reload()
    assert [event.step for event in board.Scalars("loss")] == [*range(1, 19)]
    assert [event.step for event in board.Scalars("heldout/auc")] == [5, 10, 15, 18]
    ledger = map(json.loads, (run / "ledger.jsonl").read_text().splitlines())
    # The plan's last step has its digest, whatever their distance.
    assert [line["step"] for line in ledger if "weights" in line] == [3, 7, 11, 15, 17]


def test_the_table_at_the_end_has_the_first_losses_and_the_last(tiny, all_shards, tmp_path, capsys):
    changes = {"max_steps": 3, "log_every": 5, "device": "cpu", "precision": "float32"}
    config = tiny.model_copy(update={"train": tiny.train.model_copy(update=changes)})
    fit(config, all_shards, tmp_path / "run", World(0, 1, torch.device("cpu")))
    lines = (tmp_path / "run" / "ledger.jsonl").read_text().splitlines()
    a, b, c = (float.fromhex(json.loads(line)["loss"]) for line in lines)
    told = f"{(a + b) / 2:.4f} in the first 2 steps, {(b + c) / 2:.4f} in the last"
    assert told in capsys.readouterr().out


def heldout_lines(run):
    """The lines of metrics.jsonl with figures of held-out tasks."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return [line for line in lines if "heldout_loss" in line]


def test_a_refused_start_leaves_no_folder(tiny_yaml, all_shards, refused, tmp_path, arguments):
    sentences = {
        f"train.heldout={all_shards}": "whose split is train; make held-out tasks with",
        "train.heldout=nowhere": (
            "train.heldout: nowhere holds no shards: there is no manifest.json; make held-out "
            "tasks with, say, `prior-gen --config CONFIG --split heldout --stages 3 --out FOLDER`"
        ),
        "train.init_from=nowhere": "there is no checkpoint nowhere",
        "train.where=d > 99": "d > 99",
        "train={cuda_graphs: true, reveal: both}": "cuda_graphs computes the plain loss alone",
    }
    (tmp_path / "mine").mkdir()  # a folder that was there stays
    (tmp_path / "link").symlink_to("mine")
    cases = [(out, case) for out in ("run", "mine", "link") for case in sentences]
    commands = (arguments(tiny_yaml, all_shards, tmp_path / out, case) for out, case in cases)
    for (_, case), said in zip(cases, refused(*commands), strict=True):
        assert sentences[case] in said
    assert not (tmp_path / "run").exists()
    assert (tmp_path / "mine").is_dir()


def test_entries_that_a_run_has_read_are_needed_and_parts_are_not(
    tiny_yaml, own_shards, reference_run, run_command, tmp_path, arguments, run_bytes
):
    run = tmp_path / "run"
    command = arguments(tiny_yaml, own_shards, run)
    # In the middle of stage 2, of which the first part is read.
    run_command(*command, "train.max_steps=6")
    read = [
        path
        for stage in ("1-*", "2-part-000*")
        for path in (own_shards / "parts").glob(f"stage-000{stage}")
    ]
    assert len(read) > 2
    for path in read:
        shutil.rmtree(path)
    hidden = tmp_path / "hidden.json"
    entry = own_shards / "entries" / "stage-0001-part-000.json"
    entry.rename(hidden)
    done = run_command(*command, check=False)
    assert done.returncode == 2
    assert "the files in entries/ are needed to its end" in done.stderr
    hidden.rename(entry)
    run_command(*command)
    assert run_bytes(run) == run_bytes(reference_run)
