import json

import numpy as np
import pytest
from scipy.special import expit, logit

from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, save_model
from puicl_model.class_prior import (
    at_the_limit,
    estimate,
    fit_interval,
    shift_to,
    spread_evidence,
    trained_shares,
    widened,
)

# The spread falls with the number of rows.
INTERVAL = {
    "spread": [0.0, 0.0, 0.0, -0.5, 0.0],
    "quantile": 3.0,
    "coverage": 0.9,
    "n_tasks": 50,
}


def drawn_task(rng, strength):
    """Log-odds and share of a task whose classes lie `strength` apart, as a model that takes both
    classes for equally frequent would see them."""
    share, n = rng.uniform(0.1, 0.9), int(rng.integers(50, 400))
    y = rng.random(n) < share
    z = rng.normal(size=n) + np.where(y, strength / 2, -strength / 2)
    return strength * z, y.mean()


@pytest.mark.parametrize("share", [1e-4, 0.2, 0.999])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_the_shift_gives_the_wanted_mean(share, spread):
    log_odds = np.random.default_rng(0).normal(size=500) * spread
    assert expit(log_odds + shift_to(log_odds, share)).mean() == pytest.approx(share, rel=1e-9)


def test_without_a_fitted_interval_the_estimate_is_the_mean_alone():
    found, low, high = estimate(logit([0.1, 0.5]), 200, {})
    assert found == pytest.approx(0.3)
    assert np.isnan(low)
    assert np.isnan(high)


@pytest.mark.parametrize("n", [20, 400])
def test_the_interval_is_the_cards_line_around_the_mean_on_the_log_odds_scale(n):
    card = {"class_prior_interval": INTERVAL}
    found = estimate(np.full(n, logit(0.3)), 50, card)
    middle, half = logit(0.3), 3 / np.sqrt(n)
    np.testing.assert_allclose(found, [0.3, expit(middle - half), expit(middle + half)])


@pytest.mark.parametrize(
    ("share", "opened"), [(0.12, (0,)), (0.3, ()), (0.88, (1,)), (0.05, (0,)), (0.97, (1,))]
)
def test_an_end_near_the_shares_trained_on_is_none(share, opened):
    prior = {"pi_final": [0.2, 0.8], "extensions": {"pi": [0.1, 0.9]}}
    card = {"class_prior_interval": INTERVAL, "config": {"prior": prior}}
    assert trained_shares(card) == pytest.approx((0.1, 0.9))
    found, *ends = estimate(np.full(4000, logit(share)), 50, card)
    plain = estimate(np.full(4000, logit(share)), 50, {"class_prior_interval": INTERVAL})
    assert found == plain[0]
    for place, end in enumerate(ends):
        assert end == (place if place in opened else plain[1 + place])
    assert at_the_limit(found, trained_shares(card)) == bool(opened)
    assert not at_the_limit(found, trained_shares({}))


def test_the_trained_shares_are_of_positives_and_the_priors_ranges_of_negatives():
    prior = {"pi_final": [0.1, 0.4]}
    assert trained_shares({"config": {"prior": prior}}) == pytest.approx((0.6, 0.9))
    prior["extensions"] = {"pi": [0.05, 0.2]}
    assert trained_shares({"config": {"prior": prior}}) == pytest.approx((0.6, 0.95))
    prior["extensions"] = {"pi": None}
    assert trained_shares({"config": {"prior": prior}}) == pytest.approx((0.6, 0.9))


@pytest.mark.parametrize("share", [1e-6, 1 - 1e-6])
def test_the_interval_holds_the_estimate_where_nearly_all_rows_are_one_class(share):
    card = {"class_prior_interval": INTERVAL | {"quantile": 0.0}}
    found, low, high = estimate(np.full(50, logit(share)), 50, card)
    assert low <= found <= high
    assert high > low


def test_the_fitted_interval_covers_as_it_says_and_is_wider_where_classes_overlap():
    rng = np.random.default_rng(0)
    tasks = [drawn_task(rng, strength) for strength in rng.uniform(0.5, 4, size=1200)]
    log_odds, true = [task[0] for task in tasks], np.array([task[1] for task in tasks])
    n_labeled = np.full(len(tasks), 100)
    card = {"class_prior_interval": fit_interval(log_odds[:600], n_labeled[:600], true[:600], 0.9)}
    found, low, high = np.array([estimate(x, 100, card) for x in log_odds[600:]]).T
    np.testing.assert_allclose(found, [expit(x).mean() for x in log_odds[600:]])
    assert ((low <= true[600:]) & (true[600:] <= high)).mean() == pytest.approx(0.9, abs=0.04)
    weak = np.array([4 * (expit(x) * expit(-x)).mean() for x in log_odds[600:]]) > 0.8
    assert (high - low)[weak].mean() > 1.5 * (high - low)[~weak].mean()


def test_an_interval_is_widened_until_it_covers_other_tasks_and_never_narrowed():
    rng = np.random.default_rng(1)
    tasks = [drawn_task(rng, strength) for strength in rng.uniform(0.5, 4, size=400)]
    log_odds, true = [task[0] for task in tasks], np.array([task[1] for task in tasks])
    n_labeled = np.full(len(tasks), 100)
    known = fit_interval(log_odds, n_labeled, true, 0.9)
    moved = expit(logit(true) + rng.choice([-1.0, 1.0], size=len(true)))

    def covered(interval):
        card = {"class_prior_interval": interval}
        _, low, high = np.array([estimate(x, 100, card) for x in log_odds]).T
        return ((low <= moved) & (moved <= high)).mean()

    assert covered(known) < 0.7
    wide = widened(known, log_odds, n_labeled, moved)
    assert covered(wide) == pytest.approx(0.9, abs=0.005)
    assert wide | {"quantile": 0} == known | {"quantile": 0}
    middles = [expit(x).mean() for x in log_odds]
    assert widened(known, log_odds, n_labeled, np.array(middles)) == known


def test_the_classifier_takes_the_interval_from_the_card_and_a_given_share_moves_it(tmp_path):
    config = ModelConfig(embedding_size=8, layers=1, heads=2, feedforward_size=8)
    path = tmp_path / "model.safetensors"
    save_model(path, PUICL(config).state_dict(), {"model": config.model_dump()})
    x, s = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 15
    plain = PUICLClassifier(path).fit(x, s)
    assert np.isnan(plain.class_prior_interval_).all()
    assert plain.unlabeled_proba_.mean() == pytest.approx(plain.class_prior_)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    card |= {"class_prior_interval": INTERVAL}
    path.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    sure = PUICLClassifier(path).fit(x, s)
    expected = estimate(logit(plain.unlabeled_proba_), 15, card)
    np.testing.assert_allclose(
        (sure.class_prior_, *sure.class_prior_interval_), expected, rtol=1e-6
    )
    low, high = sure.class_prior_interval_
    assert low < sure.class_prior_ < high
    np.testing.assert_array_equal(sure.unlabeled_proba_, plain.unlabeled_proba_)
    known = PUICLClassifier(path).fit(x, s, class_prior=0.2)
    assert known.class_prior_ == 0.2
    assert known.class_prior_interval_ == (0.2, 0.2)
    assert known.unlabeled_proba_.mean() == pytest.approx(0.2)
    order = np.argsort(plain.unlabeled_proba_)
    assert (np.diff(known.unlabeled_proba_[order]) >= 0).all()


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_an_end_opens_where_it_nears_the_limit_although_the_estimate_does_not(share):
    prior = {"pi_final": [0.1, 0.9]}
    card = {"class_prior_interval": INTERVAL, "config": {"prior": prior}}
    found, low, high = estimate(np.full(20, logit(share)), 50, card)
    assert not at_the_limit(found, trained_shares(card))
    assert (low == 0.0, high == 1.0) == (share < 0.5, share > 0.5)


def test_the_spread_is_told_from_doubt_and_the_numbers_of_rows_of_both_kinds():
    doubt = 4 * (0.09 + 0.25 + 0.16) / 3
    expected = [1, doubt, doubt**2, np.log(3), np.log(7)]
    np.testing.assert_allclose(spread_evidence(logit([0.1, 0.5, 0.8]), 7), expected)
