import json

import numpy as np
import pytest
from scipy.special import expit, logit

from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, doubts, save_model
from puicl_model.class_prior import (
    at_the_limit,
    estimate,
    resolution,
    shift_to,
    spread_evidence,
    trained_shares,
)
from puicl_model.class_prior_fit import fit_interval, widened

# The spread falls with the number of rows; probabilities that are sure give the share itself.
INTERVAL = {
    "center": [0.0, 0.0],
    "spread": [0.0, 0.0, 0.0, -0.5, 0.0],
    "quantile": 3.0,
    "coverage": 0.9,
    "n_tasks": 50,
}


def sure(share, n):
    """Log-odds of n rows, of which nobody doubts what they are."""
    return np.where(np.arange(n) < round(share * n), 40.0, -40.0)


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
def test_the_interval_of_sure_probabilities_is_around_the_mean_on_the_log_odds_scale(n):
    card = {"class_prior_interval": INTERVAL}
    found = estimate(sure(0.3, n), 50, card)
    middle, half = logit(0.3), 3 / np.sqrt(n)
    np.testing.assert_allclose(found, [0.3, expit(middle - half), expit(middle + half)])


@pytest.mark.parametrize(
    ("share", "opened"), [(0.12, (0,)), (0.3, ()), (0.88, (1,)), (0.05, (0,)), (0.97, (1,))]
)
def test_an_end_near_the_shares_trained_on_is_none(share, opened):
    prior = {"pi_final": [0.2, 0.8], "extensions": {"pi": [0.1, 0.9]}}
    card = {"class_prior_interval": INTERVAL, "config": {"prior": prior}}
    assert trained_shares(card) == pytest.approx((0.1, 0.9))
    found, *ends = estimate(sure(share, 4000), 50, card)
    plain = estimate(sure(share, 4000), 50, {"class_prior_interval": INTERVAL})
    assert found == plain[0]
    for place, end in enumerate(ends):
        if place in opened:
            assert end == place
        elif 0.1 < share < 0.9:
            assert end == plain[1 + place]
    assert at_the_limit(found, trained_shares(card)) == bool(opened)
    assert not at_the_limit(found, trained_shares({}))


def test_near_the_limit_is_within_a_twentieth_of_it():
    for share, near in ((0.149, True), (0.151, False), (0.849, False), (0.851, True)):
        assert at_the_limit(share, (0.1, 0.9)) == near


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
    # And some more where the estimate itself is the end that is nearer to the share.
    assert 0.86 < ((low <= true[600:]) & (true[600:] <= high)).mean() < 0.98
    weak = np.array([4 * (expit(x) * expit(-x)).mean() for x in log_odds[600:]]) > 0.8
    assert (high - low)[weak].mean() > 1.5 * (high - low)[~weak].mean()


def test_what_covers_is_told_by_tasks_that_were_left_out_of_a_fit():
    rng = np.random.default_rng(0)
    drawn = (drawn_task(rng, strength) for strength in rng.uniform(0.5, 4, size=200))
    tasks = [task for task in drawn if 0.3 < task[1] < 0.7][:30]  # of one band of shares
    n_labeled, apart = rng.integers(20, 200, size=30), np.arange(30) % 10

    def fitted(some):
        log_odds, true = zip(*(tasks[task] for task in some), strict=True)
        return fit_interval(list(log_odds), n_labeled[some], np.array(true), 1.0)

    needed = []
    for fold in range(10):
        interval = fitted(np.flatnonzero(apart != fold)) | {"quantile": 0.0}
        for task in np.flatnonzero(apart == fold):
            log_odds, true = tasks[task]
            alone = widened(interval, [log_odds], n_labeled[[task]], np.array([true]))
            needed.append(alone["quantile"])
    assert fitted(np.arange(30))["quantile"] == pytest.approx(max(needed))


def test_an_estimate_that_no_share_moves_is_as_wide_as_one_that_moves_by_a_twentieth():
    card = {"class_prior_interval": INTERVAL | {"quantile": 0.5}}
    half = 0.5 / np.sqrt(400) / 0.05
    expected = [0.5, expit(-half), expit(half)]
    np.testing.assert_allclose(estimate(np.zeros(400), 50, card), expected)


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
        held = (low <= moved) & (moved <= high)
        return [held[np.searchsorted((0.3, 0.7), moved) == band].mean() for band in range(3)]

    assert max(covered(known)) < 0.7
    wide = widened(known, log_odds, n_labeled, moved)
    assert min(covered(wide)) == pytest.approx(0.9, abs=0.01)  # rare, middling and frequent ones
    assert wide | {"quantile": 0} == known | {"quantile": 0}
    near = [sure(share, 300) for share in true]
    assert widened(known, near, n_labeled, np.array([expit(x).mean() for x in near])) == known


def test_few_tasks_of_rare_positives_are_covered_as_often_as_many_others():
    true = np.repeat([0.1, 0.5], [5, 95])
    log_odds = [sure(0.2, 400)] * 5 + [sure(0.5, 400)] * 95
    wide = widened(INTERVAL | {"quantile": 0.0}, log_odds, np.full(100, 50), true)
    spread = 1 / np.sqrt(400)
    assert wide["quantile"] == pytest.approx((logit(0.2) - logit(0.1)) / spread)


def test_the_classifier_takes_the_interval_from_the_card_and_a_given_share_moves_it(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(doubts, "_NO_SPREAD", 0.0)  # this network has learnt nothing
    config = ModelConfig(embedding_size=8, layers=1, heads=2, feedforward_size=8)
    path = tmp_path / "model.safetensors"
    save_model(path, PUICL(config).state_dict(), {"model": config.model_dump()})
    x, s = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 15
    plain = PUICLClassifier(path).fit(x, s)
    assert np.isnan(plain.class_prior_interval_).all()
    assert plain.unlabeled_proba_.mean() == pytest.approx(plain.class_prior_)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    card |= {"class_prior_interval": INTERVAL | {"spread": [0.0, 0.0, 0.0, -0.5, -0.2]}}
    path.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    sure = PUICLClassifier(path).fit(x, s)
    expected = estimate(logit(plain.unlabeled_proba_), 15, card)
    np.testing.assert_allclose(
        (sure.class_prior_, *sure.class_prior_interval_), expected, rtol=1e-6
    )
    low, high = sure.class_prior_interval_
    assert low < sure.class_prior_ < high
    (doubt,) = sure.report_["warnings"]
    assert doubt.startswith(f"the share of positives may be anything from {low:.0%} to {high:.0%}")
    np.testing.assert_array_equal(sure.unlabeled_proba_, plain.unlabeled_proba_)
    known = PUICLClassifier(path).fit(x, s, class_prior=0.2)
    assert known.class_prior_ == 0.2
    assert known.class_prior_interval_ == (0.2, 0.2)
    assert known.unlabeled_proba_.mean() == pytest.approx(0.2)
    order = np.argsort(plain.unlabeled_proba_)
    assert (np.diff(known.unlabeled_proba_[order]) >= 0).all()
    assert known.report_["warnings"] == []
    # Of a network that was trained on other shares, that is told instead.
    card |= {"config": {"prior": {"pi_final": [0.0, 0.1]}}}
    path.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    (doubt,) = PUICLClassifier(path).fit(x, s).report_["warnings"]
    assert "near the limit of those that the network was trained on (90% to 100%)" in doubt


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_an_end_opens_where_it_nears_the_limit_although_the_estimate_does_not(share):
    prior = {"pi_final": [0.1, 0.9]}
    card = {"class_prior_interval": INTERVAL, "config": {"prior": prior}}
    found, low, high = estimate(sure(share, 20), 50, card)
    assert not at_the_limit(found, trained_shares(card))
    assert (low == 0.0, high == 1.0) == (share < 0.5, share > 0.5)


def test_the_spread_is_told_from_resolution_and_the_numbers_of_rows_of_both_kinds():
    p = np.array([0.1, 0.5, 0.8])
    resolved = p.var() / (p.mean() * (1 - p.mean()))
    assert resolution(logit(p)) == pytest.approx(resolved)
    expected = [1, np.sqrt(resolved), resolved, np.log(3), np.log(7)]
    np.testing.assert_allclose(spread_evidence(logit(p), 7), expected)
    assert resolution(sure(0.3, 10)) == pytest.approx(1)
    assert resolution(np.zeros(9)) == resolution(np.full(9, -800.0)) == 0


def test_the_interval_is_told_by_a_line_that_is_flat_where_nothing_is_resolved():
    p = np.tile([0.1, 0.5, 0.8], 40)
    root, (shift, bend) = np.sqrt(resolution(logit(p))), (0.4, 0.3)
    card = {"class_prior_interval": INTERVAL | {"center": [shift, bend]}}
    _, low, high = estimate(logit(p), 50, card)
    half, slope = 3 / np.sqrt(120), root + bend * root * (1 - root)
    middle = logit(p.mean()) - shift * (1 - root) ** 2
    np.testing.assert_allclose(
        [low, high], expit([(middle - half) / slope, (middle + half) / slope])
    )
    # Where all rows are alike any share has such estimates, and where these are off the line, too:
    # they are no sign of a share beyond those trained on.
    card["config"] = {"prior": {"pi_final": [0.1, 0.9]}}
    assert estimate(np.full(120, logit(0.55)), 50, card)[1:] == (0, 1)
    off = card["class_prior_interval"] | {"center": [1.5, bend], "quantile": 3.0}
    low, high = estimate(np.full(120, logit(0.4)), 50, card | {"class_prior_interval": off})[1:]
    assert low == 0
    assert high > 0.8


def test_a_card_of_an_older_version_says_nothing_of_an_interval():
    older = {"spread": [0.0] * 5, "quantile": 3.0, "coverage": 0.9, "n_tasks": 50}
    assert np.isnan(estimate(sure(0.3, 20), 50, {"class_prior_interval": older})[1:]).all()


def test_the_fitted_interval_covers_rare_shares_as_often_as_middling_ones():
    rng = np.random.default_rng(2)
    tasks = [drawn_task(rng, strength) for strength in rng.uniform(0.5, 2.5, size=1600)]
    log_odds, true = [task[0] for task in tasks], np.array([task[1] for task in tasks])
    n_labeled = np.full(len(tasks), 100)
    interval = fit_interval(log_odds[:800], n_labeled[:800], true[:800], 0.9)
    card = {"class_prior_interval": interval}
    _, low, high = np.array([estimate(x, 100, card) for x in log_odds[800:]]).T
    t = true[800:]
    covered = (low <= t) & (t <= high)
    for least, most in ((0, 0.25), (0.25, 0.4), (0.4, 0.6), (0.6, 0.75), (0.75, 1)):
        assert covered[(least <= t) & (t < most)].mean() > 0.86
    assert 0.86 < covered.mean() < 0.98
