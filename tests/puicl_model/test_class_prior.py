import json

import numpy as np
import pytest
from scipy.special import expit, logit

from puicl_config import ModelConfig
from puicl_model import PUICL, PUICLClassifier, save_model
from puicl_model.class_prior import correct, shift_to

CALIBRATION = {
    "intercept": 0.5,
    "slope": 2.0,
    "coverage": 0.9,
    "n_unlabeled": [100.0, 400.0],
    "half_width": [1.0, 0.5],
    "n_tasks": 50,
}


@pytest.mark.parametrize("share", [1e-4, 0.2, 0.999])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
def test_the_shift_gives_the_wanted_mean(share, spread):
    log_odds = np.random.default_rng(0).normal(size=500) * spread
    assert expit(log_odds + shift_to(log_odds, share)).mean() == pytest.approx(share, rel=1e-9)


def test_without_calibration_the_estimate_is_raw_and_has_no_interval():
    estimate, low, high = correct(0.3, 200, {})
    assert estimate == 0.3
    assert np.isnan(low)
    assert np.isnan(high)


@pytest.mark.parametrize(
    ("n", "half"), [(20, 1.0), (100, 1.0), (200, 0.75), (400, 0.5), (9999, 0.5)]
)
def test_the_correction_is_a_line_on_the_log_odds_scale_and_wider_for_fewer_rows(n, half):
    found = correct(0.3, n, {"class_prior_calibration": CALIBRATION})
    middle = 0.5 + 2 * logit(0.3)
    np.testing.assert_allclose(found, expit([middle, middle - half, middle + half]))


def test_the_classifier_takes_the_correction_from_the_card_of_its_weights(tmp_path):
    config = ModelConfig(embedding_size=8, layers=1, heads=2, feedforward_size=8)
    path = tmp_path / "model.safetensors"
    save_model(path, PUICL(config).state_dict(), {"model": config.model_dump()})
    x, s = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 15
    plain = PUICLClassifier(path).fit(x, s)
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    path.with_suffix(".json").write_text(
        json.dumps(card | {"class_prior_calibration": CALIBRATION}), encoding="utf-8"
    )
    corrected = PUICLClassifier(path).fit(x, s)
    np.testing.assert_array_equal(corrected.unlabeled_proba_, plain.unlabeled_proba_)
    expected = correct(plain.class_prior_, 45, {"class_prior_calibration": CALIBRATION})
    assert (corrected.class_prior_, *corrected.class_prior_interval_) == expected
    low, high = corrected.class_prior_interval_
    assert low < corrected.class_prior_ < high
