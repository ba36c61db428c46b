"""The supervised peer: labels of both classes shown, and none that is not shown leaks."""

import numpy as np
import pytest
import torch

from puicl_config import PriorConfig, TrainConfig, load_config, run_digest
from shard_io import open_shards
from trainer.cli import _resolve
from trainer.gradient import microbatch_gradient
from trainer.loader import load
from trainer.reveal import revealed_rows, revealed_share
from trainer.state import TrainState

CPU = torch.device("cpu")
BOTH = TrainConfig(reveal="both")


@pytest.fixture
def settings(tiny_yaml):
    return _resolve(load_config(tiny_yaml, ["train.reveal=both"]), "cpu")


def test_one_override_is_enough_and_part_of_the_runs_digest():
    for name in ("paper", "cpu"):
        plain, both = load_config(name), load_config(name, ["train.reveal=both"])
        assert both.model.reveals_negatives
        assert run_digest(plain) != run_digest(both)
        more = load_config(name, ["train.reveal=both", "train.reveal_share=0.3"])
        assert run_digest(more) != run_digest(both)


def test_the_share_does_not_fall():
    prior = PriorConfig(stages=10, steps_per_stage=10, tail_steps=100)
    assert {revealed_share(prior, BOTH, step) for step in range(200)} == {0.5}


def test_both_classes_are_shown_alike_without_a_look_at_the_labels():
    y = np.random.default_rng(0).integers(0, 2, (8, 500))
    rows = revealed_rows(BOTH, (3, 1, 0), y, 0.3)
    for label in (0, 1):
        assert abs(rows[y == label].mean() - 0.3) < 0.05
    np.testing.assert_array_equal(rows, revealed_rows(BOTH, (3, 1, 0), 1 - y, 0.3))
    assert (rows != revealed_rows(BOTH, (3, 1, 1), y, 0.3)).any()
    assert (rows != revealed_rows(TrainConfig(reveal="both", seed=1), (3, 1, 0), y, 0.3)).any()


def test_a_task_always_keeps_a_row_for_the_loss():
    y = np.zeros((200, 2), dtype=int)
    rows = revealed_rows(BOTH, (1, 0, 0), y, 0.99)
    assert rows.any()
    assert (~rows).any(axis=1).all()


def test_a_shown_positive_reads_as_a_labelled_one_and_is_no_unlabelled_row(settings):
    state = TrainState(settings, CPU)
    x = torch.randn(1, 9, 3, generator=torch.Generator().manual_seed(0))
    shown = torch.zeros(1, 5, dtype=torch.bool)
    shown[0, 2] = True
    none = torch.zeros_like(shown)
    with torch.no_grad():
        labels = state.model.embed(x, 4, none, shown)[0, :, -1]
    torch.testing.assert_close(labels[4 + 2], labels[0])
    assert not torch.equal(labels[4 + 3], labels[0])


def test_hidden_labels_reach_the_loss_alone(settings, all_shards, monkeypatch):
    """Turning the labels of all hidden rows changes no logit, only the loss of these rows."""
    state, train = TrainState(settings, CPU), settings.train
    batch = load(open_shards(all_shards), (3, 0, 0))
    shown = torch.from_numpy(revealed_rows(train, batch.address, batch.y.numpy(), 0.5))
    assert shown.any()
    assert (~shown).any(dim=1).all()
    seen = []
    forward = state.model.forward
    monkeypatch.setattr(state.model, "forward", lambda *a: seen.append(a) or forward(*a))
    turned = batch._replace(y=torch.where(shown, batch.y, 1 - batch.y))
    losses = [microbatch_gradient(state, b, train, 0.5)[-1].item() for b in (batch, turned)]
    (x_a, p_a, *tokens_a), (x_b, p_b, *tokens_b) = seen
    assert torch.equal(x_a, x_b)
    assert p_a == p_b
    for a, b in zip(tokens_a, tokens_b, strict=True):
        assert torch.equal(a, b)
    # Every shown row carries the token of its class, every other row none.
    negatives, positives = tokens_a
    assert torch.equal(negatives, shown & (batch.y == 0))
    assert torch.equal(positives, shown & (batch.y == 1))
    with torch.no_grad():
        logits = forward(x_a, p_a, *tokens_a)
    for loss, y in zip(losses, (batch.y, turned.y), strict=True):
        each = -logits.log_softmax(-1).gather(-1, y.unsqueeze(-1)).squeeze(-1)
        means = [task[~mask].mean() for task, mask in zip(each, shown, strict=True)]
        assert loss == pytest.approx(torch.stack(means).mean().item(), abs=1e-6)


def test_shown_labels_inform_the_hidden_rows(settings, all_shards):
    state = TrainState(settings, CPU)
    batch = load(open_shards(all_shards), (3, 0, 0))
    shown = torch.from_numpy(revealed_rows(settings.train, batch.address, batch.y.numpy(), 0.5))
    with torch.no_grad():
        told = state.model(batch.x, batch.n_labeled, shown & (batch.y == 0), shown & (batch.y == 1))
        plain = state.model(batch.x, batch.n_labeled)
    assert (told - plain)[~shown].abs().min() > 0
