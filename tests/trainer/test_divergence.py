"""A run that leaves the finite numbers ends with a sentence, and keeps nothing of no use."""

import pytest
import torch

from puicl_config import InputError, load_config
from trainer.checkpoint import checkpoints
from trainer.cli import _resolve
from trainer.fit import fit
from trainer.world import World

ALONE = World(0, 1, torch.device("cpu"))
# Finite losses and gradients, and an update beyond float32's largest number.
OVERFLOW = ("train.phase1={peak: 1.0e+300, floor: 1.0e-6, warmup_steps: 4}",)


def trained(tiny_yaml, shards, out, *options):
    fit(_resolve(load_config(tiny_yaml, options), "cpu"), shards, out, ALONE)


def test_weights_that_are_not_finite_are_neither_saved_nor_written(tiny_yaml, all_shards, tmp_path):
    out = tmp_path / "run"
    sentence = f"is not finite after step 0: lower .* no checkpoint .* so remove {out} or give"
    with pytest.raises(InputError, match=sentence):
        trained(tiny_yaml, all_shards, out, *OVERFLOW, "train.max_steps=1")
    assert checkpoints(out / "checkpoints") == []
    assert not (out / "model.safetensors").exists()


def test_a_loss_that_is_not_finite_is_told_with_what_is_kept(tiny_yaml, all_shards, tmp_path):
    out = tmp_path / "run"
    rate = "{peak: 1.0e+30, floor: 1.0e-6, warmup_steps: 4}"
    every = "train.checkpoint_every=1"
    with pytest.raises(InputError, match=r"at step [0-9]+, .*: lower the learning rate; "):
        trained(tiny_yaml, all_shards, out, f"train.phase1={rate}")
    with pytest.raises(InputError, match="the checkpoint of step 1 is kept, where a run with oth"):
        trained(tiny_yaml, all_shards, tmp_path / "kept", f"train.phase1={rate}", every)


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_a_first_loss_or_gradient_that_is_not_finite_is_no_matter_of_the_rate(
    tiny_yaml, all_shards, tmp_path, monkeypatch, what
):
    def gradient(state, *_):
        vector = torch.ones(state.gradient.numel() + 1)
        vector[-1 if what == "loss" else 0] = torch.nan
        return vector

    monkeypatch.setattr("trainer.step.microbatch_gradient", gradient)
    with pytest.raises(InputError, match=r"at step 0, .*: before any update; no checkpoint"):
        trained(tiny_yaml, all_shards, tmp_path / "run")
