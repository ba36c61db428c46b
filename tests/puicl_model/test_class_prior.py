import json

import numpy as np
import pytest
from scipy.special import expit, logit

from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, save_model
from puicl_model.class_prior import estimate, fit_calibration, shift_to, widened

# Only the mean probability and a constant count; the spread falls with the number of rows.
CALIBRATION = {
    "weights": [0.5, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0],
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


def test_without_calibration_the_estimate_is_the_mean_and_has_no_interval():
    found, low, high = estimate(logit([0.1, 0.5]), 200, {})
    assert found == pytest.approx(0.3)
    assert np.isnan(low)
    assert np.isnan(high)


@pytest.mark.parametrize("n", [20, 400])
def test_estimate_and_interval_are_the_cards_lines_on_the_log_odds_scale(n):
    card = {"class_prior_calibration": CALIBRATION}
    found = estimate(np.full(n, logit(0.3)), 50, card)
    middle, half = 0.5 + 2 * logit(0.3), 3 / np.sqrt(n)
    np.testing.assert_allclose(found, expit([middle, middle - half, middle + half]))


def test_the_fitted_calibration_corrects_and_covers_as_it_says():
    rng = np.random.default_rng(0)
    tasks = [drawn_task(rng, strength) for strength in rng.uniform(0.5, 4, size=1200)]
    log_odds, true = [task[0] for task in tasks], np.array([task[1] for task in tasks])
    n_labeled = np.full(len(tasks), 100)
    card = {
        "class_prior_calibration": fit_calibration(log_odds[:600], n_labeled[:600], true[:600], 0.9)
    }
    found, low, high = np.array([estimate(x, 100, card) for x in log_odds[600:]]).T
    raw = np.array([expit(x).mean() for x in log_odds[600:]])
    assert np.abs(found - true[600:]).mean() < 0.8 * np.abs(raw - true[600:]).mean()
    assert ((low <= true[600:]) & (true[600:] <= high)).mean() == pytest.approx(0.9, abs=0.04)
    weak = np.array([4 * (expit(x) * expit(-x)).mean() for x in log_odds[600:]]) > 0.8
    assert (high - low)[weak].mean() > 1.5 * (high - low)[~weak].mean()


def test_an_interval_is_widened_until_it_covers_other_tasks_and_never_narrowed():
    rng = np.random.default_rng(1)
    tasks = [drawn_task(rng, strength) for strength in rng.uniform(0.5, 4, size=400)]
    log_odds, true = [task[0] for task in tasks], np.array([task[1] for task in tasks])
    n_labeled = np.full(len(tasks), 100)
    known = fit_calibration(log_odds, n_labeled, true, 0.9)
    moved = expit(logit(true) + rng.choice([-1.0, 1.0], size=len(true)))

    def covered(calibration):
        card = {"class_prior_calibration": calibration}
        _, low, high = np.array([estimate(x, 100, card) for x in log_odds]).T
        return ((low <= moved) & (moved <= high)).mean()

    assert covered(known) < 0.7
    wide = widened(known, log_odds, n_labeled, moved)
    assert covered(wide) == pytest.approx(0.9, abs=0.005)
    assert wide | {"quantile": 0} == known | {"quantile": 0}
    middles = [estimate(x, 100, {"class_prior_calibration": known})[0] for x in log_odds]
    assert widened(known, log_odds, n_labeled, np.array(middles)) == known


def test_the_classifier_takes_the_correction_from_the_card_and_its_probabilities_follow(tmp_path):
    config = ModelConfig(embedding_size=8, layers=1, heads=2, feedforward_size=8)
    path = tmp_path / "model.safetensors"
    save_model(path, PUICL(config).state_dict(), {"model": config.model_dump()})
    x, s = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 15
    plain = PUICLClassifier(path).fit(x, s)
    assert np.isnan(plain.class_prior_interval_).all()
    assert plain.unlabeled_proba_.mean() == pytest.approx(plain.class_prior_)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    card |= {"class_prior_calibration": CALIBRATION}
    path.with_suffix(".json").write_text(json.dumps(card), encoding="utf-8")
    corrected = PUICLClassifier(path).fit(x, s)
    expected = estimate(logit(plain.unlabeled_proba_), 15, card)
    np.testing.assert_allclose(
        (corrected.class_prior_, *corrected.class_prior_interval_), expected, rtol=1e-6
    )
    low, high = corrected.class_prior_interval_
    assert low < corrected.class_prior_ < high
    assert corrected.unlabeled_proba_.mean() == pytest.approx(corrected.class_prior_)
    order = np.argsort(plain.unlabeled_proba_)
    assert (np.diff(corrected.unlabeled_proba_[order]) >= 0).all()
    known = PUICLClassifier(path).fit(x, s, class_prior=0.2)
    assert known.class_prior_ == 0.2
    assert known.class_prior_interval_ == (0.2, 0.2)
    assert known.unlabeled_proba_.mean() == pytest.approx(0.2)
