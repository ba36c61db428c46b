"""Metrics against values worked out by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from pu_bench import Prediction
from pu_bench.run import judge

Y = np.array([1, 1, 1, 0, 0])


def prediction(score, label=None, class_prior=None) -> Prediction:
    score = np.asarray(score, float)
    label = (score >= 0.5).astype(int) if label is None else np.asarray(label)
    return Prediction(score, label, class_prior)


def test_metrics_have_the_values_worked_out_by_hand():
    judged = judge(prediction([0.9, 0.8, 0.35, 0.6, 0.1], class_prior=0.5), Y, True)
    # Pairs of a positive above a negative: 2 + 2 + 1 of 6; hits: 3 of 5.
    expected = {
        "auc": 5 / 6,
        "accuracy": 3 / 5,
        "f1_positive": 2 * 2 / (2 * 2 + 1 + 1),
        "f1_negative": 2 * 1 / (2 * 1 + 1 + 1),
        "balanced_accuracy": (2 / 3 + 1 / 2) / 2,
        "brier": (0.01 + 0.04 + 0.4225 + 0.36 + 0.01) / 5,
        # Every row alone in its bin: the mean of |score - class|.
        "ece": (0.1 + 0.2 + 0.65 + 0.6 + 0.1) / 5,
        "pi_error": 0.1,
    }
    assert judged.metrics == pytest.approx(expected)
    assert judged.reliability == [
        [1, 1, 0.1, 0],
        [3, 1, 0.35, 1],
        [6, 1, 0.6, 0],
        [8, 1, 0.8, 1],
        [9, 1, 0.9, 1],
    ]
    assert not judged.collapsed


def test_rows_are_ranked_finer_than_scores_that_were_cut_off():
    cut, y = np.array([1.0, 1.0, 1.0, 0.2, 0.1]), np.array([1, 1, 0, 1, 0])
    finer = Prediction(cut, (cut >= 0.5).astype(int), 0.6, ranking=np.array([5.0, 4, 3, 2, 1]))
    plain, ranked = judge(finer._replace(ranking=None), y, True), judge(finer, y, True)
    # Of six pairs a positive is above the negative in 2 + 2 + 1; tied pairs count one half.
    assert plain.metrics["auc"] == pytest.approx(4 / 6)
    assert plain.reliability == ranked.reliability
    assert ranked.metrics == pytest.approx({**plain.metrics, "auc": 5 / 6})
    with pytest.raises(ValueError, match="1 scores are not finite"):
        judge(finer._replace(ranking=np.array([5.0, np.nan, 3, 2, 1])), y, True)


@pytest.mark.parametrize("share", [-0.01, 1.01, np.nan, np.inf])
def test_a_class_prior_is_a_share(share):
    given = Prediction(np.array([0.9, 0.1]), np.array([1, 0]), share)
    with pytest.raises(ValueError, match=f"class prior is {share:.3g}, not from 0 to 1"):
        judge(given, np.array([1, 0]), True)
    for least_or_most in (0, 1, 1 + 1e-9):
        judge(given._replace(class_prior=least_or_most), np.array([1, 0]), True)


def test_calibration_error_weighs_bins_by_their_rows():
    y = np.array([1, 1, 1, 0, 0, 0, 0, 1])
    judged = judge(prediction([0.75] * 4 + [0.25] * 4), y, True)
    assert judged.metrics["ece"] == pytest.approx(0.0)
    judged = judge(prediction([0.95] * 4 + [0.25] * 4), y, True)
    assert judged.metrics["ece"] == pytest.approx(0.5 * 0.2)


def test_metrics_agree_with_scikit_learn_on_random_scores():
    rng = np.random.default_rng(0)
    y, score = rng.integers(0, 2, 200), np.round(rng.random(200), 2)
    metrics = judge(prediction(score), y, True).metrics
    assert metrics["auc"] == roc_auc_score(y, score)
    assert metrics["f1_negative"] == f1_score(1 - y, score < 0.5)


def test_what_is_not_defined_is_left_empty():
    metrics = judge(prediction([3.0, 2, -1, -2, 0], class_prior=None), Y, False)
    assert [metrics.metrics[name] for name in ("brier", "ece", "pi_error")] == [None] * 3
    assert metrics.reliability is None


def test_one_score_for_all_rows_is_a_collapse_with_chance_auc():
    judged = judge(prediction([1.0] * 5), Y, True)
    assert judged.collapsed
    assert judged.metrics["auc"] == 0.5
    assert judged.metrics["f1_negative"] == 0.0


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (prediction([0.5] * 4), "5 unlabelled rows"),
        (prediction([0.5, np.nan, 0.5, 0.5, 0.5]), "not finite"),
        (prediction([0.5] * 5, label=[1, 0, 0, 0]), r"labels \(4,\) for 5 unlabelled rows"),
        (prediction([0.5] * 5, label=[1, 2, 0, 0, 0]), "other than 0 and 1"),
        (prediction([0.5, 1.5, 0.5, 0.5, 0.5]), "probabilities from 0.5 to 1.5"),
        (prediction([0.5] * 5, class_prior=np.inf), "class prior is inf, not from 0"),
    ],
)
def test_an_answer_that_is_none_is_refused(answer, reason):
    with pytest.raises(ValueError, match=reason):
        judge(answer, Y, True)


def test_balanced_accuracy_is_the_mean_of_the_two_classes_recalls():
    # More rows are called positive than are: with as many, answer and truth could be swapped.
    judged = judge(prediction([0.9, 0.9, 0.9, 0.9, 0.1]), Y, True)
    assert judged.metrics["balanced_accuracy"] == pytest.approx((3 / 3 + 1 / 2) / 2)


def test_rows_that_a_finer_ranking_tells_apart_are_no_collapse():
    cut = Prediction(np.ones(5), np.ones(5, int), 1.0, ranking=np.array([5.0, 4, 3, 2, 1]))
    y = np.array([1, 1, 1, 0, 0])
    assert not judge(cut, y, True).collapsed
    assert judge(cut._replace(ranking=None), y, True).collapsed
    # And a score at a bin's border belongs to the bin above.
    edge = judge(Prediction(np.array([0.5, 0.0, 1, 1, 1]), np.ones(5, int), None), y, True)
    assert [place for place, *_ in edge.reliability] == [0, 5, 9]
    with pytest.raises(ValueError, match=r"probabilities from -0\.5 to 0\.5"):
        judge(Prediction(np.array([-0.5, 0.5, 0.5, 0.5, 0.5]), np.ones(5, int), None), y, True)


def test_probabilities_below_nought_are_refused():
    with pytest.raises(ValueError, match=r"probabilities from -0\.5 to 0\.5"):
        judge(prediction([-0.5, 0.5, 0.5, 0.5, 0.5]), Y, True)


def test_an_estimated_share_is_held_against_the_classes_and_not_against_the_answer():
    judged = judge(prediction([0.9, 0.9, 0.9, 0.9, 0.1], class_prior=0.75), Y, True)
    assert judged.metrics["pi_error"] == pytest.approx(0.75 - 3 / 5)


def test_a_methods_own_labels_count_and_not_its_scores_above_one_half():
    # PUSB's classes are a share of the rows, a ratio's and a margin's lie at cuts of their own.
    judged = judge(prediction([0.9, 0.8, 0.7, 0.6, 0.1], label=[1, 1, 0, 0, 0]), Y, True)
    assert judged.metrics["accuracy"] == pytest.approx(4 / 5)
    assert judged.metrics["f1_negative"] == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert judged.metrics["f1_positive"] == pytest.approx(2 * 2 / (2 * 2 + 1))
    assert judged.metrics["balanced_accuracy"] == pytest.approx((2 / 3 + 1) / 2)
