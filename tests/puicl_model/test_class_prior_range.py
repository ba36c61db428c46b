"""A share of positives of which the least and the most are known."""

import json

import numpy as np
import pytest
from scipy.special import expit, logit

from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, fit_many, save_model
from puicl_model.class_prior import estimate, estimate_within, resolution
from puicl_model.class_prior_fit import fit_interval

INTERVAL = {
    "center": [0.0, 0.0],
    "spread": [-0.5, 0.0, 0.0, 0.0, 0.0],
    "quantile": 2.0,
    "coverage": 0.9,
    "n_tasks": 50,
}
CARD = {"class_prior_interval": INTERVAL}


def sure(share, n=1000):
    """Log-odds of n rows, of which nobody doubts what they are."""
    return np.where(np.arange(n) < round(share * n), 40.0, -40.0)


def drawn_task(rng):
    """Log-odds, as of a model that takes shares for about a half, and the true share below that."""
    share, n = rng.uniform(0.02, 0.98), 300
    apart = rng.uniform(0.2, 3)
    y = rng.random(n) < share
    return apart * (rng.normal(size=n) + np.where(y, apart / 2, -apart / 2)), y.mean()


def test_where_nothing_is_resolved_the_estimate_is_the_middle_of_the_range():
    flat = np.zeros(200)  # all rows are alike: any share would give this
    for least, most in ((0.0, 0.5), (0.1, 0.2), (0.6, 1.0)):
        share, low, high = estimate_within(flat, 50, CARD, least, most)
        assert share == pytest.approx((least + most) / 2, abs=1e-6)
        assert (low, high) == pytest.approx((least, most), abs=1e-9)


def test_where_all_is_resolved_the_estimate_is_the_one_of_old():
    card = {"class_prior_interval": INTERVAL | {"spread": [-4.0, 0.0, 0.0, 0.0, 0.0]}}
    for given in (0.1, 0.3, 0.45):
        share, low, high = estimate_within(sure(given), 50, card, 0.0, 0.5)
        assert share == pytest.approx(given, abs=0.01)
        free = estimate(sure(given), 50, card)
        assert (low, high) == free[1:]
        assert low < share < high


def test_an_estimate_beyond_the_range_is_drawn_to_its_end_and_the_interval_is_the_range():
    card = {"class_prior_interval": INTERVAL | {"spread": [-3.0, 0.0, 0.0, 0.0, 0.0]}}
    share, low, high = estimate_within(sure(0.8), 50, card, 0.0, 0.5)
    assert 0.47 < share < 0.5
    assert (low, high) == (0.0, 0.5)
    share, low, high = estimate_within(sure(0.2), 50, card, 0.3, 0.5)
    assert 0.3 < share < 0.33
    assert (low, high) == (0.3, 0.5)


def test_the_interval_holds_the_estimate_where_it_hardly_reaches_into_the_range():
    card = {"class_prior_interval": INTERVAL | {"quantile": 0.7}}
    low, high = estimate(sure(0.6), 50, card)[1:]
    assert low < 0.5 < high
    share, *ends = estimate_within(sure(0.6), 50, card, 0.0, 0.5)
    assert share < low
    assert ends == [share, 0.5]
    low, high = estimate(sure(0.4), 50, card)[1:]
    share, *ends = estimate_within(sure(0.4), 50, card, 0.49, 1.0)
    assert share > high > 0.49
    assert ends == [0.49, share]


def test_the_likelihood_is_normal_around_the_line():
    """Against a sum written down anew: resolution 1, so that the line is the share itself."""
    shares = (np.arange(1000) + 0.5) / 2000
    # Errors' mean logarithm is -.5: of a normal's, ln(sd) - (gamma + ln 2) / 2.
    sd = np.exp(-0.5 + (0.5772156649 + np.log(2)) / 2)
    weights = np.exp(-(((logit(0.4) - logit(shares)) / sd) ** 2) / 2)
    expected = (weights * shares).sum() / weights.sum()
    assert estimate_within(sure(0.4), 50, CARD, 0.0, 0.5)[0] == pytest.approx(expected, rel=1e-4)
    # And half resolved, where the line is bent and does not pass through a half.
    p = np.tile([0.1, 0.5, 0.8], 40)
    root, shares = np.sqrt(resolution(logit(p))), 0.1 + shares * 0.8
    slope, intercept = root + 0.3 * root * (1 - root), 0.9 * (1 - root) ** 2
    weights = np.exp(-(((logit(p.mean()) - intercept - slope * logit(shares)) / sd) ** 2) / 2)
    expected = (weights * shares).sum() / weights.sum()
    card = {"class_prior_interval": INTERVAL | {"center": [0.9, 0.3]}}
    found = estimate_within(logit(p), 50, card, 0.1, 0.5)[0]
    assert found == pytest.approx(expected, rel=1e-4)


def test_answers_that_would_fall_as_the_share_rises_say_nothing_of_it():
    p = np.tile([0.1, 0.5, 0.8], 40)
    card = {"class_prior_interval": INTERVAL | {"center": [0.0, -9.0]}}
    root = np.sqrt(resolution(logit(p)))
    assert root - 9 * root * (1 - root) < -0.5
    share = estimate_within(logit(p), 50, card, 0.0, 0.5)[0]
    assert share == pytest.approx(0.25, abs=1e-6)
    _, low, high = estimate(logit(p), 50, card)
    assert (low, high) == pytest.approx((0, 1), abs=1e-6)


def test_without_a_line_the_mean_is_kept_within_the_range():
    for card in ({}, {"class_prior_interval": {"slope": 1.0}}):
        assert estimate_within(sure(0.3), 50, card, 0.0, 0.5) == (0.3, 0.0, 0.5)
        assert estimate_within(sure(0.7), 50, card, 0.0, 0.5) == (0.5, 0.0, 0.5)


def test_knowing_that_positives_are_rarer_makes_estimates_and_probabilities_better():
    rng = np.random.default_rng(0)
    tasks = [drawn_task(rng) for _ in range(900)]
    log_odds, true = [task[0] for task in tasks], np.array([task[1] for task in tasks])
    n_labeled = np.full(len(tasks), 100)
    card = {"class_prior_interval": fit_interval(log_odds[:600], n_labeled[:600], true[:600], 0.9)}
    rare = [k for k in range(600, 900) if true[k] < 0.5]
    free = [abs(estimate(log_odds[k], 100, card)[0] - true[k]) for k in rare]
    told = [abs(estimate_within(log_odds[k], 100, card, 0.0, 0.5)[0] - true[k]) for k in rare]
    assert np.mean(told) < 0.7 * np.mean(free)


@pytest.fixture
def carded(tmp_path):
    """Untrained weights with an interval that is sure of itself."""
    config = ModelConfig(embedding_size=8, layers=1, heads=2, feedforward_size=8)
    path = tmp_path / "model.safetensors"
    save_model(path, PUICL(config).state_dict(), {"model": config.model_dump()})
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    sharp = {"center": [0.0, 1.0], "spread": [-3.0, 0.0, 0.0, 0.0, 0.0], "quantile": 1.0}
    card |= {"class_prior_interval": INTERVAL | sharp}
    path.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    return path


X, S = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 15


@pytest.mark.parametrize("given", [(0, 0.5), [0.0, 0.3], (0.6, 1)])
def test_the_classifier_takes_a_range_and_keeps_the_order(carded, given):
    free = PUICLClassifier(carded).fit(X, S)
    told = PUICLClassifier(carded).fit(X, S, class_prior=given)
    expected = estimate_within(
        logit(free.unlabeled_proba_), 15, told.model_card_, *map(float, given)
    )
    np.testing.assert_allclose((told.class_prior_, *told.class_prior_interval_), expected, 1e-5)
    assert told.unlabeled_proba_.mean() == pytest.approx(told.class_prior_)
    shift = logit(told.unlabeled_proba_) - logit(free.unlabeled_proba_)
    np.testing.assert_allclose(shift, shift[0], atol=1e-5)
    new = np.random.default_rng(1).normal(size=(5, 3))
    moved = told.decision_function(new) - free.decision_function(new)
    np.testing.assert_allclose(moved, shift[0], atol=1e-5)
    assert told.report_["class_prior_given"] == list(given)
    assert free.report_["class_prior_given"] is None
    several = fit_many([(X, S), (X, S, given)], PUICLClassifier(carded))
    for many, one in zip(several, (free, told), strict=True):
        shares = many.class_prior_, *many.class_prior_interval_
        assert shares == pytest.approx((one.class_prior_, *one.class_prior_interval_), rel=1e-5)


def test_a_range_that_the_table_contradicts_is_told(carded):
    free = PUICLClassifier(carded).fit(X, S)
    low, high = free.class_prior_interval_
    for given in ((0.0, low / 2), (high + (1 - high) / 2, 1.0)):
        told = PUICLClassifier(carded).fit(X, S, class_prior=given)
        (doubt,) = (text for text in told.report_["warnings"] if "range that was given" in text)
        assert doubt.startswith(f"by the table alone, {low:.0%} to {high:.0%} of the")
    agreed = PUICLClassifier(carded).fit(X, S, class_prior=(low / 2, 1.0))
    assert "range that was given" not in " ".join(agreed.report_["warnings"])


def test_a_small_share_does_not_make_columns_look_as_if_they_told_nothing():
    """Probabilities that a small share has drawn together say nothing of the columns."""
    y = np.append(np.ones(40), np.arange(160) % 2)
    table = np.random.default_rng(0).normal(size=(200, 2)) + 1.5 * y[:, None]
    for given in (0.02, (0.01, 0.03)):
        told = PUICLClassifier(n_estimators=1).fit(table, np.arange(200) < 40, class_prior=given)
        assert resolution(logit(told.unlabeled_proba_)) < 0.06  # what counts as hardly anything
        assert "lie close together" not in " ".join(told.report_["warnings"])


@pytest.mark.parametrize(
    "given",
    [(0.5, 0.2), (0.2, 0.2), (-0.1, 0.5), (0.5, 1.1), (0.1,), (0, 0.2, 0.5), "ab", ("a", 1)],
)
def test_what_is_no_range_is_refused(carded, given):
    with pytest.raises(ValueError, match="or be a pair of least and most, not"):
        PUICLClassifier(carded).fit(X, S, class_prior=given)


def test_a_saved_fit_keeps_what_the_range_gave(carded, tmp_path):
    told = PUICLClassifier(carded).fit(X, S, class_prior=(0, 0.5))
    told.save(tmp_path / "fit.puicl")
    again = PUICLClassifier.load(tmp_path / "fit.puicl")
    assert again.class_prior_ == told.class_prior_
    assert again.class_prior_interval_ == told.class_prior_interval_
    assert again.report_ == told.report_
    assert told.report_["class_prior_given"] == [0.0, 0.5]
    np.testing.assert_array_equal(again.predict_proba(X[:4]), told.predict_proba(X[:4]))
    assert expit(again.decision_function(X[:4])) == pytest.approx(again.predict_proba(X[:4])[:, 1])
