"""Muon, revealed negatives, and runs that begin from another run's checkpoint."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from puicl_config import InputError, PriorConfig, TrainConfig, load_config
from shard_io import open_shards
from trainer import average_checkpoints
from trainer.checkpoint import (
    CheckpointState,
    checkpoints,
    load_checkpoint,
    read_state,
    save_checkpoint,
)
from trainer.cli import _resolve
from trainer.compact import compact_checkpoint
from trainer.gradient import microbatch_gradient
from trainer.loader import load
from trainer.reveal import revealed_rows, revealed_share
from trainer.run_folder import recorded_start
from trainer.state import TrainState

CPU = torch.device("cpu")
MAIN = Path(__file__).resolve().parent.parent.parent / "trainer" / "main.py"
RECIPE = (
    "model.norm=rmsnorm",
    "model.thinking_rows=3",
    "model.feature_group=[0,1,3]",
    "model.row_heads=1",
    "model.reveals_negatives=true",
    "train.optimizer=muon",
    "train.reveal_negatives={share: 0.5, until: 0.5}",
    "train.precision=bfloat16",
)


def test_muon_moves_a_blocks_matrices_by_orthogonal_steps_and_adamw_the_rest(tiny_yaml):
    settings = _resolve(load_config(tiny_yaml, ["train.optimizer=muon"]), "cpu")
    state = TrainState(settings, CPU)
    before = {name: p.detach().clone() for name, p in state.parameters.items()}
    gradient = torch.randn(state.gradient.shape, generator=torch.Generator().manual_seed(0))
    rate = 1e-3
    state.update(gradient, rate)
    for name, p in state.parameters.items():
        step = (before[name] * (1 - rate * 1e-4) - p.detach()) / rate
        if name.startswith("blocks.") and p.ndim == 2:
            # Newton-Schulz brings all singular values near one, times max(1, rows / columns)^1/2.
            scale = settings.train.muon_lr_ratio * max(1.0, p.shape[0] / p.shape[1]) ** 0.5
            values = torch.linalg.svdvals(step) / scale
            assert 0.5 < values.median() < 1.4, name
            assert values.max() < 1.5, name
        else:
            # AdamW's first step is the sign of the gradient.
            np.testing.assert_allclose(step.abs().numpy(), 1, atol=2e-3, err_msg=name)


def test_the_revealed_share_falls_linearly_to_nothing():
    prior = PriorConfig(stages=10, steps_per_stage=10, tail_steps=100)
    train = TrainConfig(reveal_negatives={"share": 0.6, "until": 0.5})
    shares = [revealed_share(prior, train, step) for step in (0, 25, 50, 100, 199)]
    np.testing.assert_allclose(shares, [0.6, 0.45, 0.3, 0.0, 0.0], atol=1e-12)
    assert revealed_share(prior, TrainConfig(), 0) == 0


def test_only_negatives_are_revealed_by_seed_and_address_alone():
    y = np.random.default_rng(0).integers(0, 2, (8, 500))
    rows = revealed_rows(TrainConfig(), (3, 1, 0), y, 0.3)
    assert rows.shape == y.shape
    assert not rows[y == 1].any()
    assert abs(rows[y == 0].mean() - 0.3) < 0.05
    np.testing.assert_array_equal(rows, revealed_rows(TrainConfig(), (3, 1, 0), y, 0.3))
    for other in ((2, 1, 0), (3, 0, 0), (3, 1, 1)):
        assert (rows != revealed_rows(TrainConfig(), other, y, 0.3)).any()
    assert (rows != revealed_rows(TrainConfig(seed=1), (3, 1, 0), y, 0.3)).any()
    # A falling share only hides rows again, it never shows others.
    assert not (revealed_rows(TrainConfig(), (3, 1, 0), y, 0.1) & ~rows).any()


def test_revealed_rows_are_left_out_of_the_loss(tiny_yaml, all_shards):
    settings = _resolve(load_config(tiny_yaml, ["model.reveals_negatives=true"]), "cpu")
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (3, 0, 0))
    share = 0.5
    shown = torch.from_numpy(revealed_rows(settings.train, batch.address, batch.y.numpy(), share))
    assert shown.any()
    vector = microbatch_gradient(state, batch, settings.train, share)
    with torch.no_grad():
        logits = state.model(batch.x, batch.n_labeled, shown)
    losses = -logits.log_softmax(-1).gather(-1, batch.y.unsqueeze(-1)).squeeze(-1)
    means = [losses[task][~shown[task]].mean() for task in range(len(batch.y))]
    assert vector[-1].item() == pytest.approx(torch.stack(means).mean().item(), abs=1e-6)


def test_the_whole_recipe_gives_the_same_bits_on_two_processes_and_resumed(
    tiny_yaml, all_shards, run_command, tmp_path
):
    def command(out, *more):
        return (MAIN, "--config", tiny_yaml, "--shards", all_shards, "--out", out, *RECIPE, *more)

    one, two = tmp_path / "one", tmp_path / "two"
    run_command(*command(one))
    launch = ("-m", "torch.distributed.run", "--nproc-per-node", 2)
    rendezvous = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
    run_command(*launch, *rendezvous, *command(two, "train.max_steps=7"))
    run_command(*command(two))
    for name in ("ledger.jsonl", "model.safetensors"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    newest = [checkpoints(run / "checkpoints")[-1] / "state.safetensors" for run in (one, two)]
    assert newest[0].read_bytes() == newest[1].read_bytes()


def test_a_run_begins_from_anothers_checkpoint_and_records_it(
    tiny_yaml, all_shards, run_command, refused, tmp_path
):
    def command(out, *more):
        return (MAIN, "--config", tiny_yaml, "--shards", all_shards, "--out", out, *more)

    parent, child = tmp_path / "parent", tmp_path / "child"
    run_command(*command(parent, "train.max_steps=5", "train.checkpoint_every=3"))
    source = checkpoints(parent / "checkpoints")[-1]
    begin = ("train.phase1.peak=1e-3", f"train.init_from={source}")
    run_command(*command(child, *begin, "train.max_steps=4"))
    run_command(*command(child, *begin, "train.max_steps=6"))  # resumes within the lineage
    earlier = checkpoints(parent / "checkpoints")[0]
    sentences = {
        (): f"began at {source}: say so again",
        (f"train.init_from={earlier}",): "a run that did not begin at train.init_from",
        (f"train.init_from={parent}",): "is a run: give one of its checkpoints, such as",
        ("train.init_from=nowhere",): "there is no checkpoint nowhere",
    }
    smaller = ("model.layers=1", "model.embedding_size=8", begin[1])
    told = refused(
        *(command(child, begin[0], *start, "train.max_steps=7") for start in sentences),
        command(parent, begin[1], "train.max_steps=6"),
        command(tmp_path / "other", *smaller),
    )
    for sentence, said in zip(sentences.values(), told, strict=False):
        assert sentence in said
    assert "began from its seed, not from train.init_from" in told[-2]
    assert "train.init_from: its unlabeled_token is [16], this model's is [8]" in told[-1]
    assert "of its card: model.embedding_size=16 model.layers=2" in told[-1]
    assert recorded_start(child) == str(source)
    source.rename(tmp_path / "gone")  # what it held is in the lineage
    run_command(*command(child, *begin, "train.max_steps=6"))
    (tmp_path / "gone").rename(source)
    about, _ = load_checkpoint(checkpoints(child / "checkpoints")[-1])
    theirs, tensors = load_checkpoint(source)
    assert about.step == 6
    assert [ancestor["step"] for ancestor in about.lineage.ancestors] == [5]
    assert about.lineage.parent == theirs.tensors_digest
    card = json.loads((child / "model.json").read_text())
    assert card["lineage"][0]["run_digest"] == theirs.run_digest
    assert card["run_digest"] != theirs.run_digest
    state = TrainState(_resolve(load_config(tiny_yaml), "cpu"), CPU)
    state.begin_from(tensors, theirs.step)
    taken = state.tensors()
    assert all(taken[name].equal(tensors[name]) for name in tensors)
    counts = {name: count.item() for name, count in taken.items() if name not in tensors}
    assert counts == {f"step.{name}": 5 for name in state.parameters}


def test_a_run_begun_with_anothers_moments_goes_on_to_the_same_bits(
    tiny_yaml, all_shards, reference_run, run_command, arguments, run_bytes, tmp_path
):
    start = checkpoints(reference_run / "checkpoints")[-1]
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    for out, stops in ((whole, (6,)), (stopped, (0, 2, 6))):
        for stop in stops:
            more = (f"train.init_from={start}", f"train.max_steps={stop}")
            run_command(*arguments(tiny_yaml, all_shards, out, *more))
    assert run_bytes(stopped) == run_bytes(whole)


def steps_of(state, seeds):
    """The state after an update with the random gradient of each seed."""
    for seed in seeds:
        generator = torch.Generator().manual_seed(seed)
        state.update(torch.randn(state.gradient.shape, generator=generator), 1e-3)
    return state


@pytest.mark.parametrize("first", ["adamw", "muon"])
@pytest.mark.parametrize("then", ["adamw", "muon"])
def test_adamw_counts_a_parameters_steps_from_where_its_moments_began(tiny_yaml, first, then):
    def fresh(optimizer):
        config = load_config(tiny_yaml, [f"train.optimizer={optimizer}"])
        return TrainState(_resolve(config, "cpu"), CPU)

    def copied(state):
        return {name: tensor.clone() for name, tensor in state.tensors().items()}

    seed = steps_of(fresh(first), range(3))
    assert not [name for name in seed.tensors() if name.startswith("step.")]
    child = fresh(then)
    child.begin_from(copied(seed), 3)
    steps_of(child, [3, 4])
    tensors = copied(child)
    counts = {tensor.item() for name, tensor in tensors.items() if name.startswith("step.")}
    assert counts == {5}
    # Resumed, and as the start of a third run: the count goes on, whatever that run's own step.
    resumed, grandchild, late = fresh(then), fresh(then), fresh(then)
    resumed.restore(tensors, 2)
    assert resumed.step == 2
    grandchild.begin_from(tensors, 2)
    late.restore(copied(grandchild), 0)
    steps_of(child, [5])
    for state in (resumed, grandchild, late):
        after = steps_of(state, [5]).tensors()
        for name, tensor in child.tensors().items():
            if not name.startswith("step."):
                assert after[name].equal(tensor), name


def test_a_compact_checkpoint_is_smaller_and_another_run_begins_from_it(tiny_yaml, tmp_path):
    settings = _resolve(load_config(tiny_yaml, list(RECIPE)), "cpu")
    state = steps_of(TrainState(settings, CPU), range(3))
    about = CheckpointState(step=3, run_digest="run", plan_digest="plan", data="data")
    source = save_checkpoint(tmp_path / "full", about, state.tensors())
    small = compact_checkpoint(source, tmp_path / "small")
    sizes = [(path / "state.safetensors").stat().st_size for path in (small, source)]
    assert sizes[0] < 0.75 * sizes[1]
    _, tensors = load_checkpoint(small)
    other = TrainState(settings, CPU)
    other.begin_from(tensors, 3)
    taken = other.tensors()
    for name, tensor in state.tensors().items():
        assert taken[name].dtype == torch.float32
        torch.testing.assert_close(taken[name], tensor, rtol=2**-7, atol=1e-8)
    with pytest.raises(InputError, match="holds step 3 already"):
        compact_checkpoint(source, tmp_path / "small")
    with pytest.raises(InputError, match="is rounded already"):
        compact_checkpoint(small, tmp_path / "smaller")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file is a file; give a folder"):
        compact_checkpoint(source, tmp_path / "file")


def test_a_compact_checkpoint_keeps_adamws_counts(tiny_yaml, tmp_path):
    state = TrainState(_resolve(load_config(tiny_yaml), "cpu"), CPU)
    state.begin_from(state.tensors(), 1001)  # bfloat16 has no 1001
    about = CheckpointState(step=0, run_digest="run", plan_digest="plan", data="data")
    source = save_checkpoint(tmp_path / "full", about, state.tensors())
    about, tensors = load_checkpoint(compact_checkpoint(source, tmp_path / "small"))
    assert about.is_rounded(tensors)
    assert {tensors[f"step.{name}"].item() for name in state.parameters} == {1001}


def test_no_run_goes_on_from_its_rounded_checkpoint(
    tiny_yaml, all_shards, refused, arguments, reference_run, tmp_path
):
    run, older = tmp_path / "run", tmp_path / "older"
    newest = checkpoints(reference_run / "checkpoints")[-2]
    compact_checkpoint(newest, run / "checkpoints")
    shutil.copytree(run, older)
    state = older / "checkpoints" / newest.name / "state.json"  # as the first ones were written
    fields = json.loads(state.read_text())
    assert fields.pop("rounded_from") == read_state(newest).tensors_digest
    del fields["state_digest"]
    state.write_text(json.dumps(fields))
    for said in refused(*(arguments(tiny_yaml, all_shards, out) for out in (run, older))):
        assert "is rounded to bfloat16" in said
    assert not (run / "ledger.jsonl").exists()
    with pytest.raises(InputError, match="is rounded to bfloat16"):
        average_checkpoints([state.parent], tmp_path / "mean.safetensors")
