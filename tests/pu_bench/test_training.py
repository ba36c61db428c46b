"""What the rivals' networks descend on: which rows, which risk, which share, which settings."""

import numpy as np
import pytest
import torch
from little_runs import labeled_and_not
from torch import nn

from pu_bench.methods import METHODS, pu_risk, ted, vpu
from pu_bench.methods.networks import batches, generator_of
from pu_bench.methods.risks import (
    logistic_loss,
    non_negative_objective,
    sigmoid_loss,
    unbiased_risk,
)


class Reads(nn.Module):
    """A network that says a row's first column and learns nothing."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x[:, :1] + 0 * self.weight


@pytest.fixture
def reading(monkeypatch):
    """Methods whose networks say the first column of the rows as they are."""
    for module in (pu_risk, ted, vpu):
        monkeypatch.setattr(module, "mlp", lambda *_: Reads())
        monkeypatch.setattr(module, "standardized", lambda P, U: (P, U))


def numbered(n_p: int, n_u: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are numbers: labelled ones below zero, the others from one on."""
    return -1.0 - np.arange(n_p)[:, np.newaxis], 1.0 + np.arange(n_u)[:, np.newaxis]


RISKS = {
    "nnpu": (sigmoid_loss, non_negative_objective),
    "upu": (sigmoid_loss, unbiased_risk),
    "pusb": (logistic_loss, non_negative_objective),
}


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("name", RISKS)
def test_a_risk_minimiser_descends_on_its_papers_risk_with_the_share_it_is_given(name, monkeypatch):
    method, (loss, risk) = METHODS[name](), RISKS[name]
    assert METHODS[name].objective is risk
    asked, told = [], []

    def keep(g_p, g_u, alpha, of):
        (asked if torch.is_grad_enabled() else told).append((g_p, g_u, alpha, of))
        return risk(g_p, g_u, alpha, of)

    monkeypatch.setattr(METHODS[name], "objective", staticmethod(keep))
    monkeypatch.setattr(pu_risk, "unbiased_risk", keep)
    monkeypatch.setattr(pu_risk, "EPOCHS", 2)
    assert method.predict_given(*numbered(100, 200), 0, 0.3).class_prior == 0.3
    assert {(alpha, of) for _, _, alpha, of in asked + told} == {(0.3, loss)}
    trained, held = (
        tuple({row for one in calls for row in one[side].tolist()} for side in (0, 1))
        for calls in (asked, told)
    )
    assert max(trained[0]) < 0 < min(trained[1])
    if name == "upu":  # whose epoch is chosen on a fifth that it is not trained on
        assert [len(rows) for rows in held] == [20, 40]
        assert not trained[0] & held[0]
        assert not trained[1] & held[1]
    else:
        assert (len(trained[0]), told) == (100, [])


def test_nnpu_takes_the_overfit_back_wherever_the_negatives_part_is_below_zero():
    # sigmoid(-3) - .5 / 2 is below zero, and with the positives' .5 / 2 above it.
    given = torch.zeros(4), torch.full((4,), -3.0), 0.5, sigmoid_loss
    negative = 1 / (1 + np.exp(3)) - 0.25
    assert unbiased_risk(*given).item() == pytest.approx(negative + 0.25)
    assert non_negative_objective(*given).item() == pytest.approx(-negative)


@pytest.mark.usefixtures("reading")
def test_ted_trains_on_what_each_estimate_leaves_and_tells_the_last_one(monkeypatch):
    estimates, negatives = iter((0.25, 0.5, 0.75)), []
    monkeypatch.setattr(ted, "best_bin", lambda p, u: next(estimates))
    monkeypatch.setattr(ted, "WARM_START", 1)
    monkeypatch.setattr(ted, "EPOCHS", 2)

    def keep(network, optimizer, positive, negative):
        assert (positive < 0).all()
        negatives.append(set(negative[:, 0].tolist()))

    monkeypatch.setattr(ted, "_step", keep)
    monkeypatch.setattr(ted, "BATCH_SIZE", 80)
    # 80 of 100 rows are trained on, all in one batch.
    prediction = METHODS["ted"]().fit_predict(*numbered(50, 100), 0)
    whole, first, second = negatives
    assert prediction.class_prior == 0.75
    assert [len(rows) for rows in negatives] == [80, 60, 40]
    for kept in (first, second):  # without those that score highest
        assert kept == set(sorted(whole)[: len(kept)])


@pytest.mark.usefixtures("reading")
def test_vpus_rows_that_choose_are_not_those_that_it_is_trained_on(monkeypatch):
    loss, trained, held = vpu.variational_loss, [set(), set()], [set(), set()]

    def keep(log_phi_p, log_phi_u):
        for rows, told in zip(trained if torch.is_grad_enabled() else held, (log_phi_p, log_phi_u),
                              strict=True):  # fmt: skip
            rows.update(told.tolist())
        return loss(log_phi_p, log_phi_u)

    monkeypatch.setattr(vpu, "variational_loss", keep)
    P, U = numbered(50, 100)
    METHODS["vpu"]().fit_predict(P / 20, U / 20, 0)
    assert [len(rows) for rows in held] == [10, 20]
    for one, other in zip(trained, held, strict=True):
        assert one
        assert not one & other


@pytest.mark.usefixtures("reading")
def test_vpus_mixture_and_its_target_weigh_a_labelled_row_alike(monkeypatch):
    seen = []

    def keep(log_target, log_mixed):
        seen.append((log_target.detach(), log_mixed.detach()))
        return (log_target - log_mixed).square().mean()

    monkeypatch.setattr(vpu, "mixup_loss", keep)
    monkeypatch.setattr(vpu, "EPOCHS", 3)
    METHODS["vpu"]().fit_predict(np.zeros((20, 1)), np.full((40, 1), 2.0), 0)
    shares = []
    for log_target, log_mixed in seen:
        # Rows of U say 2 and labelled ones 0, so that a mixture says twice U's share.
        share = torch.logit(log_mixed.double().exp()) / 2
        expected = share * torch.tensor(2.0).sigmoid() + (1 - share)
        torch.testing.assert_close(log_target.double().exp(), expected, rtol=1e-5, atol=1e-5)
        shares.append(share.mean().item())
    assert max(shares) - min(shares) > 0.3


def test_vpus_regulariser_counts(monkeypatch):
    monkeypatch.setattr(vpu, "LEARNING_RATES", (1e-3,))
    monkeypatch.setattr(vpu, "EPOCHS", 2)
    scores = []
    for weight in (0.03, 30.0):
        monkeypatch.setattr(vpu, "MIXUP_WEIGHTS", (weight,))
        scores.append(METHODS["vpu"]().fit_predict(*labeled_and_not(), 0).score)
    assert (scores[0] != scores[1]).any()


@pytest.mark.parametrize(
    ("name", "optimizer", "settings"),
    [
        ("nnpu", "Adam", {"weight_decay": 5e-3}),
        ("vpu", "Adam", {"betas": (0.5, 0.99)}),
        ("ted", "SGD", {"momentum": 0.9, "weight_decay": 5e-4}),
    ],
)
def test_optimizers_have_their_papers_settings(name, optimizer, settings, monkeypatch):
    made, make = [], getattr(torch.optim, optimizer)

    def keep(*arguments, **options):
        made.append(options)
        return make(*arguments, **options)

    monkeypatch.setattr(torch.optim, optimizer, keep)
    for module in (pu_risk, ted, vpu):
        monkeypatch.setattr(module, "EPOCHS", 1)
    monkeypatch.setattr(ted, "WARM_START", 1)
    METHODS[name]().fit_predict(*labeled_and_not(), 0)
    assert made
    assert all({key: options.get(key) for key in settings} == settings for options in made)


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize(
    ("name", "steps"),
    [("nnpu", 24), ("pusb", 24), ("upu", 20), ("vpu", 20), ("ted", 30)],
)
def test_an_epoch_is_one_pass_over_the_unlabelled_rows_that_train(name, steps, monkeypatch):
    # Two epochs of 12 batches of 8 of a hundred rows, or of 10 where a fifth is held out; TED
    # begins with one more.
    for setting, value in (("EPOCHS", 2), ("BATCH_SIZE", 8)):
        for module in (pu_risk, ted, vpu):
            monkeypatch.setattr(module, setting, value)
    for setting, value in (("ted.WARM_START", 1), ("vpu.MIXUP_WEIGHTS", (0.3,)),
                           ("vpu.LEARNING_RATES", (1e-3,))):  # fmt: skip
        monkeypatch.setattr(f"pu_bench.methods.{setting}", value)
    # As many where next to all rows are discarded: those that are left come again.
    monkeypatch.setattr(ted, "kept_by_cvir", lambda score, alpha: torch.arange(5))
    made, seen, backward, forward = [], set(), torch.Tensor.backward, Reads.forward

    def keep(self, x):
        if torch.is_grad_enabled():
            seen.update(x[:, 0].tolist())
        return forward(self, x)

    monkeypatch.setattr(torch.Tensor, "backward", lambda loss: made.append(backward(loss)))
    monkeypatch.setattr(Reads, "forward", keep)
    P, U = numbered(50, 100)
    METHODS[name]().fit_predict(P, U, 0)
    assert len(made) == steps
    # And all labelled rows that train come in it, however few are in a batch.
    assert len(seen & set(P[:, 0])) == (50 if name in ("nnpu", "pusb") else 40)


def test_a_step_of_ted_weighs_both_classes_alike_however_many_rows_they_have():
    network = nn.Linear(1, 1)
    nn.init.zeros_(network.weight)
    nn.init.zeros_(network.bias)
    descent = torch.optim.SGD(network.parameters(), 1.0)
    ted._step(network, descent, torch.ones(3, 1), -torch.ones(1, 1))
    # Where all rows have the probability 1/2, each class moves by half of one half.
    assert network.weight.item() == pytest.approx(0.5)
    assert network.bias.item() == pytest.approx(0.0)


def test_every_pass_is_in_an_order_of_its_own():
    feed = batches(torch.arange(50).unsqueeze(1), 50, generator_of(0))
    assert (next(feed) != next(feed)).any()
