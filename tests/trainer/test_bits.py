"""The trainer's promises, with real processes: world size, kills, data and config."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from sklearn.metrics import roc_auc_score

from prior_gen.generator import generate_shards
from puicl_config import load_config
from puicl_model import load_model
from shard_io import open_shards
from trainer import compare_runs
from trainer.checkpoint import checkpoints, load_checkpoint, newest_whole, set_aside

ROOT = Path(__file__).resolve().parent.parent.parent


def test_training_changes_the_weights_and_lowers_nothing_but_reports_all(reference_run, tiny):
    lines = [json.loads(line) for line in (reference_run / "ledger.jsonl").open()]
    assert [line["step"] for line in lines] == list(range(18))
    assert all(0.1 < float.fromhex(line["loss"]) < 2 for line in lines)
    assert [line["step"] for line in lines if "weights" in line] == [2, 5, 8, 11, 14, 17]
    assert len({line["weights"] for line in lines if "weights" in line}) == 6
    assert lines[12]["microbatches"] == [[4, 0, index] for index in range(4)]
    model, card = load_model(reference_run / "model.safetensors")
    assert card["steps"] == 18
    assert model.config == tiny.model
    for name in ("config.yaml", "environment.json"):
        assert (reference_run / name).stat().st_size > 50
    assert list((reference_run / "tensorboard").glob("events*"))


def test_the_shipped_weights_of_a_run_are_the_moving_average(reference_run):
    kept = checkpoints(reference_run / "checkpoints")
    assert [path.name for path in kept] == ["step-00000010", "step-00000015", "step-00000018"]
    _, tensors = load_checkpoint(kept[-1])
    weights = load_file(reference_run / "model.safetensors")
    for name, weight in weights.items():
        assert weight.equal(tensors[f"ema.{name}"])
    assert not weights["decoder.outer.weight"].equal(tensors["model.decoder.outer.weight"])


def test_whoever_may_read_a_run_may_read_its_checkpoints(reference_run):
    newest = checkpoints(reference_run / "checkpoints")[-1]
    modes = {path.stat().st_mode for path in (reference_run / "config.yaml", *newest.iterdir())}
    assert len(modes) == 1


@pytest.mark.parametrize("processes", [2, 3])
def test_several_processes_give_the_same_bits_as_one(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, processes, arguments, run_bytes
):
    # Three processes share four microbatches: one of them idles in every second round.
    out = tmp_path / "run"
    run_command(*arguments(tiny_yaml, all_shards, out, processes=processes))
    assert run_bytes(out) == run_bytes(reference_run)


def test_webdataset_loader_threads_and_heldout_figures_give_the_same_bits(
    tiny_yaml, reference_run, run_command, tmp_path, arguments, run_bytes
):
    from puicl_config import load_config

    config = load_config(tiny_yaml, ["shards.format=webdataset"])
    generate_shards(config, tmp_path / "tar", range(1, 6), jobs=1)
    generate_shards(config, tmp_path / "heldout", [2, 3], split="heldout", jobs=1)
    out = tmp_path / "run"
    options = ("train.loader_threads=3", "train.log_every=5", "train.heldout_every=6")
    options += (f"train.heldout={tmp_path / 'heldout'}", "train.heldout_microbatches=7")
    done = run_command(*arguments(tiny_yaml, tmp_path / "tar", out, *options))
    assert run_bytes(out) == run_bytes(reference_run)

    lines = [json.loads(line) for line in (out / "metrics.jsonl").open()]
    figures = [line for line in lines if "heldout_auc" in line]
    assert [line["step"] for line in figures] == [6, 12, 18]
    assert len({line["heldout_set"] for line in figures}) == 1
    assert [line["step"] for line in lines if "loss" in line] == [5, 10, 15]
    assert [line["seconds"] for line in lines] == sorted(line["seconds"] for line in lines)
    ledger = [json.loads(line) for line in (out / "ledger.jsonl").open()]
    losses = [float.fromhex(line["loss"]) for line in ledger]
    second = next(line for line in lines if "loss" in line and line["step"] == 10)
    assert second["loss"] == pytest.approx(sum(losses[5:10]) / 5)
    assert f"AUC {figures[-1]['heldout_auc']:.4f}" in done.stdout
    assert f"{sum(losses[:5]) / 5:.4f} in the first 5 steps" in done.stdout
    assert json.loads((out / "model.json").read_text())["weights_digest"] in done.stdout
    # The figures are those of the weights that the run ships, on tasks that can be read again.
    reader = open_shards(tmp_path / "heldout")
    places = [
        (part, position) for part in reader.published_parts() for position in reader.positions(part)
    ]
    model, _ = load_model(out / "model.safetensors")
    aucs, losses, accuracies = [], [], []
    for number in range(7):
        part, position = places[number * len(places) // 7]
        batch = reader.part(part)[position]
        logits = model(torch.from_numpy(batch.x).float(), batch.n_labeled)
        classes = torch.from_numpy(batch.y).long()
        losses.append(F.cross_entropy(logits.flatten(0, 1), classes.flatten()).item())
        accuracies.append((logits.argmax(-1) == classes).float().mean().item())
        for score, y in zip((logits[..., 1] - logits[..., 0]).numpy(), batch.y, strict=True):
            aucs.append(roc_auc_score(y, score))
    per_batch = [sum(aucs[i : i + 3]) / 3 for i in range(0, len(aucs), 3)]
    assert figures[-1]["heldout_auc"] == pytest.approx(sum(per_batch) / 7, abs=1e-9)
    assert figures[-1]["heldout_loss"] == pytest.approx(sum(losses) / 7, abs=1e-5)
    assert figures[-1]["heldout_accuracy"] == pytest.approx(sum(accuracies) / 7, abs=1e-6)


def test_a_killed_run_goes_on_to_the_same_bits_on_other_processes(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments, run_bytes
):
    out = tmp_path / "run"
    command = arguments(tiny_yaml, all_shards, out, "train.checkpoint_every=2")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    victim = subprocess.Popen([sys.executable, *map(str, command)], env=environment)
    deadline = time.monotonic() + 60
    while not checkpoints(out / "checkpoints") and time.monotonic() < deadline:
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    assert checkpoints(out / "checkpoints"), "the run never wrote a checkpoint"
    assert not (out / "model.safetensors").exists(), "the run ended before it was killed"
    # A checkpoint half written is never taken for one.
    (out / "checkpoints" / ".step-00000099.tmp").mkdir()
    run_command(*arguments(tiny_yaml, all_shards, out, processes=4))
    assert run_bytes(out) == run_bytes(reference_run)
    assert not list((out / "checkpoints").glob(".*"))


def test_a_stopped_run_goes_on_to_the_same_bits(
    tiny_yaml, all_shards, reference_run, run_command, tmp_path, arguments, run_bytes
):
    out = tmp_path / "run"
    for stop in (7, 13):
        done = run_command(*arguments(tiny_yaml, all_shards, out, f"train.max_steps={stop}"))
        assert f"trainer: {stop}/{stop} steps (100%)" in done.stderr
    # On the way the disk cut the newest checkpoint short, and the software changed.
    newest = checkpoints(out / "checkpoints")[-1]
    assert newest.name == "step-00000013"
    truncate(newest / "state.safetensors")
    environment = out / "environment.json"
    stretch = json.loads(environment.read_text())
    environment.write_text(json.dumps([{**stretch[0], "torch": "1.0"}]))
    done = run_command(*arguments(tiny_yaml, all_shards, out))
    assert f"the checkpoint {newest} is damaged" in done.stdout
    assert "going back to the checkpoint before it" in done.stdout
    assert "training tiny from step 10 to 18" in done.stdout
    differs = f"torch: 1.0 before, {stretch[0]['torch']} now"
    assert f"environment differs from this run's last stretch: {differs}" in done.stdout
    assert [each["from_step"] for each in json.loads(environment.read_text())] == [0, 10]
    assert run_bytes(out) == run_bytes(reference_run)
    assert compare_runs(out, reference_run).equal
    assert (out / "checkpoints" / "damaged-step-00000013").is_dir()
    seconds = [json.loads(line)["seconds"] for line in (out / "metrics.jsonl").open()]
    assert seconds == sorted(seconds)


def truncate(path: Path) -> None:
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize(
    "damage",
    ["truncated", "no state", "no tensors", "torn state", "a bit", "another step", "another start"],
)
def test_a_checkpoint_that_is_not_whole_is_never_taken_for_one(reference_run, tmp_path, damage):
    folder = tmp_path / "checkpoints"
    shutil.copytree(reference_run / "checkpoints", folder)
    older, newest = checkpoints(folder)[-2:]
    tensors, state = newest / "state.safetensors", newest / "state.json"
    if damage == "truncated":
        truncate(tensors)
    elif damage == "no state":
        state.unlink()
    elif damage == "no tensors":
        tensors.unlink()
    elif damage == "torn state":
        truncate(state)
    elif damage == "another step":  # also of those from before their state had a digest
        about = json.loads(state.read_text())
        del about["state_digest"]
        state.write_text(json.dumps(about | {"step": 17}))
    elif damage == "another start":
        state.write_text(state.read_text().replace('"data": "', '"data": "0'))
    else:
        content = bytearray(tensors.read_bytes())
        content[-1] ^= 1
        tensors.write_bytes(content)
    (folder / ".step-00000099.tmp").mkdir()
    found, damaged = newest_whole(folder)
    assert found[0].step == load_checkpoint(older)[0].step < 18
    assert [path for path, _ in damaged] == [newest]
    set_aside(newest)
    assert checkpoints(folder)[-1] == older


def test_without_the_tail_phase_one_is_trained_and_the_next_command_is_named(
    tiny_yaml, tiny, reference_run, run_command, tmp_path, arguments, run_bytes
):
    shards, out = tmp_path / "shards", tmp_path / "run"
    generate_shards(tiny, shards, [1, 2, 3], jobs=1)
    done = run_command(*arguments(tiny_yaml, shards, out))
    assert "lacks the tail: training up to step 12 of 18" in done.stdout
    assert f"`prior-gen --config {shards}/manifest.json --stages 4-5 --out {shards}`" in done.stdout
    assert checkpoints(out / "checkpoints")[-1].name == "step-00000012"
    generate_shards(tiny, shards, [4, 5], jobs=1)
    run_command(*arguments(tiny_yaml, shards, out))
    assert run_bytes(out) == run_bytes(reference_run)


def test_wrong_shards_are_refused_before_the_first_step(
    tiny_yaml, tiny, all_shards, refused, tmp_path, arguments
):
    hole, truncated, heldout = (tmp_path / name for name in ("hole", "truncated", "heldout"))
    for folder in (hole, truncated):
        shutil.copytree(all_shards, folder)
    (hole / "entries" / "stage-0002-part-001.json").unlink()
    path = truncated / "parts" / "stage-0003-part-002.zarr" / "x" / "c" / "0"
    path.write_bytes(path.read_bytes()[:-1])
    generate_shards(tiny, heldout, [1, 2, 3], split="heldout", jobs=1)
    sentences = {
        (all_shards, "prior.seed=5"): "holds another plan than the config: prior.seed is 0 there",
        (all_shards, "train.sede=5"): "unknown key train.sede; did you mean train.seed?",
        (hole,): "lacks stage-0002-part-001",
        (truncated,): "bytes instead of",
        (tmp_path / "nowhere", "prior.seed=5", "train.sampler=reverse"): (
            f"nowhere holds no shards: there is no manifest.json; make them with `prior-gen "
            f"--config {tiny_yaml} --set prior.seed=5 --stages 1-5 --out {tmp_path / 'nowhere'}`, "
            "or give another --shards"
        ),
        (heldout,): "split is heldout there, train wanted",
    }
    out = tmp_path / "run"
    told = refused(*(arguments(tiny_yaml, case[0], out, *case[1:]) for case in sentences))
    for sentence, said in zip(sentences.values(), told, strict=True):
        assert sentence in said
    assert not (out / "ledger.jsonl").exists()


def test_a_run_is_not_continued_under_another_config_or_on_other_data(
    tiny_yaml, tiny, all_shards, run_command, refused, tmp_path, arguments
):
    out, nameless = tmp_path / "run", tmp_path / "nameless"
    run_command(*arguments(tiny_yaml, all_shards, out, "train.max_steps=3"))
    shutil.copytree(out, nameless)
    (nameless / "config.yaml").unlink()
    for name, override in (("wide", "shards.x_dtype=float32"), ("other", "prior.seed=9")):
        generate_shards(load_config(tiny_yaml, [override]), tmp_path / name, range(1, 6), jobs=1)
    told = refused(
        arguments(tiny_yaml, all_shards, out, "train.clip_norm=2", "model.layers=1"),
        arguments(tiny_yaml, tmp_path / "wide", out),
        arguments(tiny_yaml, all_shards, nameless, "train.clip_norm=2"),
        arguments(tiny_yaml, tmp_path / "other", nameless, "prior.seed=9"),
    )
    assert "model.layers is 2 there, 1 now; train.clip_norm is 1.0 there, 2.0 now" in told[0]
    assert "their content digests differ, first at step 0, which reads stage-" in told[1]
    for said, digest in zip(told[2:], ("run", "plan"), strict=True):
        assert f"belongs to another run: its {digest} digest is " in said
        assert "the code has changed: configs have other keys" in said


def test_two_trainers_never_write_to_one_run(
    tiny_yaml, all_shards, run_command, tmp_path, arguments
):
    from trainer.run_folder import lock_run

    lock = lock_run(tmp_path / "run", print)
    done = run_command(*arguments(tiny_yaml, all_shards, tmp_path / "run"), check=False)
    assert done.returncode == 2
    assert "another trainer is writing to" in done.stderr
    lock.close()
