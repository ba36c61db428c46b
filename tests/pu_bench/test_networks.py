import math

import numpy as np
import pytest
import torch
from little_runs import labeled_and_not
from sklearn.metrics import roc_auc_score
from torch import nn

from pu_bench.methods import METHODS, pu_risk, ted, vpu
from pu_bench.methods.networks import batches, generator_of, held_out, mlp, one_thread
from pu_bench.methods.pu_risk import (
    PUSB,
    UPU,
    NNPUTruePrior,
    PUSBTruePrior,
    RiskMinimiser,
    UPUTruePrior,
)
from pu_bench.methods.risks import (
    logistic_loss,
    non_negative_objective,
    sigmoid_loss,
    unbiased_risk,
)
from pu_bench.methods.ted import TED, kept_by_cvir
from pu_bench.methods.vpu import VPU, mixup_loss, variational_loss


@pytest.fixture(scope="module")
def tilted():
    """Positives N(0, I), negatives N(2, I) in two dimensions, half each in U; the posterior is
    a monotone function of the sum of the features."""
    rng = np.random.default_rng(11)
    y = rng.permutation(np.arange(300) < 150)
    U = rng.normal(size=(300, 2)) + np.where(y[:, np.newaxis], 0.0, 2.0)
    return rng.normal(size=(120, 2)), U, y.astype(int)


def best_auc(U, y) -> float:
    return roc_auc_score(y, -U.sum(axis=1))


def test_variational_loss_equals_the_formula_on_numbers():
    p, u = torch.tensor([0.5, 0.25]), torch.tensor([0.2, 0.4, 0.6])
    expected = math.log(0.4) - (math.log(0.5) + math.log(0.25)) / 2
    assert variational_loss(p.log(), u.log()).item() == pytest.approx(expected, rel=1e-6)
    # a factor of Phi changes nothing
    assert variational_loss((p / 2).log(), (u / 2).log()).item() == pytest.approx(
        expected, rel=1e-6
    )


def test_variational_loss_is_lowest_at_the_posterior():
    positive, unlabeled = np.array([0.7, 0.2, 0.1]), np.array([0.4, 0.3, 0.3])
    posterior = positive / unlabeled  # up to the factor alpha

    def loss(phi) -> float:
        return math.log(unlabeled @ phi) - positive @ np.log(phi)

    rng = np.random.default_rng(0)
    others = [posterior * rng.uniform(0.5, 1.5, 3) for _ in range(200)]
    assert loss(posterior) < min(map(loss, others))


def test_mixup_loss_equals_the_formula_on_numbers():
    target, phi = torch.tensor([0.5, 0.9]), torch.tensor([0.25, 0.9])
    assert mixup_loss(target.log(), phi.log()).item() == pytest.approx(math.log(2) ** 2 / 2)


def test_vpu_ranks_by_the_posterior_and_scores_up_to_one(tilted, monkeypatch):
    monkeypatch.setattr("pu_bench.methods.vpu.LEARNING_RATES", (1e-3,))
    monkeypatch.setattr("pu_bench.methods.vpu.MIXUP_WEIGHTS", (0.3,))
    P, U, y = tilted
    score = VPU().fit_predict(P, U, 0).score
    assert roc_auc_score(y, score) > best_auc(U, y) - 0.03
    assert score.max() == 1.0
    assert score.min() >= 0


def test_cvir_discards_the_top_alpha_share():
    score = torch.tensor([0.3, 0.9, 0.1, 0.8, 0.5])
    assert sorted(kept_by_cvir(score, 0.4).tolist()) == [0, 2, 4]
    assert len(kept_by_cvir(score, 0.0)) == 5
    assert len(kept_by_cvir(score, 1.0)) == 0
    assert len(kept_by_cvir(score, 0.39)) == 4  # int(1.95): rounded down, as the authors do


def test_ted_ranks_by_the_posterior_and_estimates_the_share(tilted):
    P, U, y = tilted
    prediction = TED().fit_predict(P, U, 0)
    assert roc_auc_score(y, prediction.score) > best_auc(U, y) - 0.03
    assert (prediction.label == y).mean() > 0.8
    assert prediction.class_prior == pytest.approx(0.5, abs=0.2)


G_P, G_U = torch.tensor([2.0, -1.0]), torch.tensor([0.0, 1.0, -3.0])


@pytest.mark.parametrize(
    ("loss", "by_hand"),
    [
        (sigmoid_loss, lambda z: 1 / (1 + np.exp(z))),
        (logistic_loss, lambda z: np.log1p(np.exp(-z))),
    ],
)
def test_risks_equal_the_formulas_on_numbers(loss, by_hand):
    p, u = G_P.numpy().astype(float), G_U.numpy().astype(float)
    for alpha in (0.3, 0.95):
        positive = alpha * by_hand(p).mean()
        negative = by_hand(-u).mean() - alpha * by_hand(-p).mean()
        given = G_P, G_U, alpha, loss
        assert unbiased_risk(*given).item() == pytest.approx(positive + negative, rel=1e-5)


def test_nnpu_descends_on_the_risk_or_takes_the_overfit_back():
    fits = torch.tensor([3.0, 3.0]), torch.tensor([3.0, -3.0, -3.0])
    assert non_negative_objective(*fits, 0.3, sigmoid_loss) == unbiased_risk(
        *fits, 0.3, sigmoid_loss
    )
    overfit = torch.tensor([3.0, 3.0]), torch.tensor([-3.0, -3.0, -3.0])
    negative = sigmoid_loss(-overfit[1]).mean() - 0.5 * sigmoid_loss(-overfit[0]).mean()
    assert negative < 0
    assert non_negative_objective(*overfit, 0.5, sigmoid_loss) == -negative
    # a descent step on that raises the negatives' part again
    g_u = overfit[1].clone().requires_grad_()
    non_negative_objective(overfit[0], g_u, 0.5, sigmoid_loss).backward()
    assert (g_u.grad < 0).all()


@pytest.mark.parametrize("method", [NNPUTruePrior, UPUTruePrior, PUSBTruePrior])
def test_risk_minimisers_given_the_prior_find_the_classes(method, tilted):
    P, U, y = tilted
    prediction = method().fit_predict(P, U, 0, class_prior=0.5)
    assert roc_auc_score(y, prediction.score) > best_auc(U, y) - 0.03
    assert (prediction.label == y).mean() > 0.83
    assert prediction.class_prior == 0.5


def test_pusb_calls_the_given_share_positive():
    label = PUSB().label(np.array([0.1, 0.9, -5.0, 0.3]), 0.5)
    assert label.tolist() == [0, 1, 0, 1]
    # Of nine rows .3 are 2.7, hence 3: below zero, too.
    label = PUSB().label(np.array([-9.0, 3.0, -1.0, 2.0, -2.0, -8.0, -7.0, -6.0, -5.0]), 0.3)
    assert label.tolist() == [0, 1, 1, 1, 0, 0, 0, 0, 0]


def test_network_is_a_function_of_the_generator_with_torchs_own_bounds():
    first, again = (mlp([4, 300, 1], generator_of(7)) for _ in range(2))
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    assert isinstance(first[0], nn.Linear)
    largest = [first[layer].weight.abs().max().item() for layer in (0, 2)]
    assert largest == pytest.approx([0.5, 300**-0.5], rel=0.02)
    assert first[0].bias.abs().max().item() == pytest.approx(0.5, rel=0.02)
    assert [type(layer) for layer in first] == [nn.Linear, nn.ReLU, nn.Linear]


def test_batches_pass_over_all_rows_before_one_comes_again():
    rows = torch.arange(10).unsqueeze(1)
    feed = batches(rows, 5, generator_of(0))
    for _ in range(3):
        seen = torch.cat([next(feed), next(feed)])[:, 0]
        assert sorted(seen.tolist()) == list(range(10))
    assert len(next(batches(rows, 64, generator_of(0)))) == 10


def test_held_out_rows_are_no_training_rows():
    train, test = held_out(11, 0.2, generator_of(0))
    assert len(test) == 2
    assert sorted([*train.tolist(), *test.tolist()]) == list(range(11))
    # The nearest number of rows, and one where that is none.
    assert [len(held_out(n, 0.2, generator_of(0))[1]) for n in (13, 12, 2)] == [3, 2, 1]


def test_one_thread_within_and_as_many_as_before_afterwards():
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_risk_minimisers_estimate_the_share_that_they_are_not_given(monkeypatch):
    monkeypatch.setattr("pu_bench.methods.pu_risk.best_bin_estimate", lambda P, U, seed: seed / 10)
    monkeypatch.setattr(
        RiskMinimiser, "predict_given", lambda self, P, U, seed, alpha: (seed, alpha)
    )
    for name in ("nnpu", "upu", "pusb"):
        assert METHODS[name]().fit_predict(np.eye(2), np.eye(2), 3) == (3, 0.3)
        assert METHODS[f"{name}_true_prior"]().fit_predict(
            np.eye(2), np.eye(2), 3, class_prior=0.6
        ) == (3, 0.6)


def test_upu_takes_the_epoch_of_the_lowest_held_out_risk(monkeypatch):
    def score(*risks):
        told = iter(risks)
        monkeypatch.setattr(pu_risk, "EPOCHS", len(risks))
        monkeypatch.setattr(pu_risk, "unbiased_risk", lambda *_: torch.tensor(next(told)))
        return UPU().predict_given(*labeled_and_not(), 0, 0.5).score

    second = score(2.0, 1.0)
    np.testing.assert_array_equal(score(2.0, 1.0, 3.0), second)
    assert (score(1.0, 2.0, 3.0) != second).any()


def test_vpu_takes_setting_and_epoch_of_the_lowest_held_out_loss(monkeypatch):
    loss = vpu.variational_loss
    monkeypatch.setattr(vpu, "MIXUP_WEIGHTS", (0.3,))

    def score(*losses, rates=(1e-3,)):
        told = iter(losses)

        def scripted(log_phi_p, log_phi_u):
            training = torch.is_grad_enabled()
            return loss(log_phi_p, log_phi_u) if training else torch.tensor(next(told))

        monkeypatch.setattr(vpu, "variational_loss", scripted)
        monkeypatch.setattr(vpu, "LEARNING_RATES", rates)
        monkeypatch.setattr(vpu, "EPOCHS", len(losses) // len(rates))
        return VPU().fit_predict(*labeled_and_not(), 0).score

    second = score(2.0, 1.0)
    np.testing.assert_array_equal(score(2.0, 1.0, 3.0), second)
    assert (score(1.0, 2.0, 3.0) != second).any()
    both = (1e-3, 1e-4)
    np.testing.assert_array_equal(score(2.0, 1.0, 5.0, 4.0, rates=both), second)
    assert (score(5.0, 4.0, 2.0, 1.0, rates=both) != second).any()


def test_vpus_learning_rate_is_halved_every_twenty_epochs(monkeypatch):
    made, adam = [], torch.optim.Adam

    def keep(parameters, rate, **options):
        made.append(rate)
        return adam(parameters, rate, **options)

    monkeypatch.setattr(torch.optim, "Adam", keep)
    for name, value in (("LEARNING_RATES", (1e-3,)), ("MIXUP_WEIGHTS", (0.3,)), ("PATIENCE", 99)):
        monkeypatch.setattr(vpu, name, value)
    VPU().fit_predict(*labeled_and_not(12, 12), 0)
    assert made == [1e-3, 5e-4, 2.5e-4]


def test_ted_estimates_the_share_on_rows_held_out(monkeypatch):
    asked = []
    monkeypatch.setattr(ted, "best_bin", lambda p, u: asked.append((len(p), len(u))) or 0.5)
    monkeypatch.setattr(ted, "WARM_START", 1)
    monkeypatch.setattr(ted, "EPOCHS", 2)
    assert TED().fit_predict(*labeled_and_not(50, 100), 0).class_prior == 0.5
    assert asked == [(10, 20)] * 3
