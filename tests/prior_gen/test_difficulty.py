"""The baselines that say how hard a task of the prior is."""

import numpy as np
import pytest

from prior_gen.preview import difficulty
from prior_gen.preview.difficulty import BASELINES, cross_fitted_scores, pu_auc


@pytest.mark.parametrize("baseline", BASELINES)
def test_labels_made_by_one_feature_give_an_auc_near_one_and_noise_one_near_a_half(baseline):
    rng = np.random.default_rng(0)
    aucs = {"one feature": [], "noise": []}
    for seed in range(6):
        x = rng.normal(size=(600, 5))
        order = np.argsort(x[:, 2])
        positive, negative = rng.permutation(order[:400]), order[400:]
        labeled, hidden = positive[:200], rng.permutation([*positive[200:], *negative])
        task = x[np.concatenate([labeled, hidden])]
        y = np.isin(hidden, positive).astype(np.uint8)
        aucs["one feature"].append(pu_auc(baseline, task, y, seed))
        aucs["noise"].append(pu_auc(baseline, rng.normal(size=(600, 5)), y, seed))
    assert min(aucs["one feature"]) > 0.95
    assert abs(np.mean(aucs["noise"]) - 0.5) < 0.06


def test_a_task_too_small_to_be_cross_fitted_has_no_auc():
    assert np.isnan(pu_auc("logistic", np.zeros((5, 2)), np.ones(4, dtype=np.uint8), 0))
    assert np.isnan(pu_auc("logistic", np.zeros((8, 2)), np.ones(4, dtype=np.uint8), 0))


def test_the_few_rows_that_a_large_task_is_fitted_to_are_of_both_classes(monkeypatch):
    monkeypatch.setattr(difficulty, "MAX_TRAINING_ROWS", 6)
    fitted = []

    class Noted:
        def fit(self, x, s):
            fitted.append(s.tolist())

        def predict_proba(self, x):
            return np.zeros((len(x), 2))

    s = (np.arange(60) < 4).astype(int)
    cross_fitted_scores(lambda seed: Noted(), np.zeros((60, 1)), s, seed=0)
    assert len(fitted) == difficulty.FOLDS
    assert all({*classes} == {0, 1} and len(classes) <= 6 for classes in fitted)
