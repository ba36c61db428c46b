"""Prevalence, SCAR and ties in generated microbatches, over many of them."""

import math

import numpy as np
import pytest
import reference_prior as reference
from prior_draws import (
    ALPHA,
    K,
    assert_distributed,
    assert_happens_with_probability,
    assert_uniform_over,
    small_config,
    small_microbatches,
)
from scipy import stats

import prior_gen.microbatch as microbatch_module
from prior_gen.factors import draw_factors
from prior_gen.microbatch import generate_task
from prior_gen.pu_split import negative_rows, split_rows
from prior_gen.sizes import task_sizes
from puicl_config import PriorConfig


def test_the_realised_prevalence_is_within_one_row_of_each_tasks_target():
    n_tasks = 0
    for stage in (1, 50, 100, 134):
        for microbatch in small_microbatches(stage, 25, eta_final=(0.1, 2.0)):
            n_u = microbatch.tags["n_unlabeled"]
            assert microbatch.y.shape == (24, n_u)
            assert set(np.unique(microbatch.y)) == {0, 1}
            for y, pi in zip(microbatch.y, microbatch.tags["pi"], strict=True):
                negatives = n_u - int(y.sum())
                nearest = min(max(pi * n_u, 1), n_u - 1)
                assert abs(negatives - nearest) <= 1
                n_training, n_negative = reference.pu_sizes(microbatch.n_labeled, n_u, pi)
                assert negatives == n_negative - (n_training - microbatch.n_labeled)
                n_tasks += 1
    assert n_tasks == 2400


def test_a_microbatch_has_the_shapes_its_factors_say():
    for microbatch in small_microbatches(K, 20):
        tags = microbatch.tags
        factors = draw_factors(small_config().prior, *microbatch.address)
        rows = tags["n_labeled"] + tags["n_unlabeled"]
        assert microbatch.x.shape == (24, rows, tags["n_features"])
        assert microbatch.x.dtype == np.float16
        assert microbatch.y.dtype == np.uint8
        assert {key: tags[key] for key in factors.tags()} == factors.tags()
        assert microbatch.n_labeled == factors.n_labeled


@pytest.fixture(scope="module")
def scar_scores():
    """Rank-sum scores of one feature a task: labelled positives against both hidden classes."""
    scores = {"location": [], "spread": [], "other class": []}
    for stage in (20, 60, 100):
        for microbatch in small_microbatches(stage, 40, pi_final=(0.3, 0.6)):
            P = microbatch.n_labeled
            for task, (x, y) in enumerate(zip(microbatch.x, microbatch.y, strict=True)):
                feature = x[:, task % x.shape[1]].astype(np.float64)
                labeled, positives, negatives = (
                    feature[:P],
                    feature[P:][y == 1],
                    feature[P:][y == 0],
                )
                far, near = (np.abs(part - np.median(feature)) for part in (labeled, positives))
                scores["location"].append(rank_sum_z(labeled, positives))
                scores["spread"].append(rank_sum_z(far, near))
                scores["other class"].append(rank_sum_z(labeled, negatives))
    return {name: [z for z in values if z is not None] for name, values in scores.items()}


@pytest.mark.parametrize("compared", ["location", "spread"])
def test_labelled_and_unlabelled_positives_have_the_same_distribution(scar_scores, compared):
    assert len(scar_scores[compared]) > 2500
    assert_distributed(scar_scores[compared], stats.norm())


def test_labelled_positives_and_negatives_differ_so_that_comparison_has_power(scar_scores):
    assert stats.kstest(scar_scores["other class"], stats.norm().cdf).pvalue < 1e-20


def rank_sum_z(first, second):
    """Mann-Whitney z of two samples with the variance corrected for ties; None if constant."""
    both = np.concatenate([first, second])
    ranks = stats.rankdata(both)
    n, m, total = len(first), len(second), len(both)
    variance = n * m * ranks.var() / (total - 1)
    if variance == 0:
        return None
    return (ranks[:n].sum() - n * (total + 1) / 2) / math.sqrt(variance)


def test_every_positive_is_labelled_with_the_same_probability_whatever_its_row_or_score():
    sizes = task_sizes(6, 9, 0.4)
    score = np.sort(np.random.default_rng(0).standard_normal(sizes.n_rows))
    n_positive = sizes.n_rows - sizes.n_negative
    labeled = np.zeros(sizes.n_rows)
    kept = np.zeros(sizes.n_rows)
    first_label = 0
    trials = 6000
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        rows, y = split_rows(rng, negative_rows(rng, score, sizes.n_negative), sizes)
        labeled[rows[:6]] += 1
        kept[rows[6:]] += 1
        first_label += int(y[0])
        assert (rows[:6] < n_positive).all()  # scores rise with the row: positives come first
        np.testing.assert_array_equal(y, rows[6:] < n_positive)
    assert_equal_inclusion(labeled[:n_positive], 6, trials)
    kept_negatives = sizes.n_negative - sizes.n_removed
    assert_equal_inclusion(kept[n_positive:], kept_negatives, trials)
    assert_happens_with_probability(first_label, trials, (9 - kept_negatives) / 9)


def assert_equal_inclusion(counts, drawn, trials):
    """Chi-square test that `drawn` of the places were taken uniformly without replacement."""
    places = len(counts)
    share = drawn / places
    statistic = ((counts - trials * share) ** 2).sum() / (trials * share * (1 - share))
    assert stats.chi2.sf(statistic * (places - 1) / places, places - 1) > ALPHA


def test_every_labelled_and_every_unlabelled_place_is_exchangeable():
    sizes = task_sizes(5, 8, 0.5)
    score = np.arange(sizes.n_rows, dtype=float)
    first_row, last_row, first_hidden = [], [], []
    for seed in range(4000):
        rng = np.random.default_rng(seed)
        rows, y = split_rows(rng, negative_rows(rng, score, sizes.n_negative), sizes)
        first_row.append(int(rows[0]))
        last_row.append(int(rows[4]))
        first_hidden.append((int(rows[5]), int(y[0])))
    positives = range(sizes.n_rows - sizes.n_negative)
    assert_uniform_over(first_row, positives)
    assert_uniform_over(last_row, positives)
    hidden_negatives = [row for row, label in first_hidden if label == 0]
    assert_uniform_over(hidden_negatives, range(len(positives), sizes.n_rows))


def test_ties_fall_at_random_and_never_by_row_order():
    taken = np.zeros(20)
    for seed in range(5000):
        taken[negative_rows(np.random.default_rng(seed), np.zeros(20), 7)] += 1
    assert_equal_inclusion(taken, 7, 5000)

    # Three rows above, seven tied for the two last places, the rest below.
    score = np.array([0, 1, 0, 1, 2, 1, -1, 1, 2, 1, 1, 2, 1], dtype=float)
    taken = np.zeros(13)
    for seed in range(5000):
        taken[negative_rows(np.random.default_rng(seed), score, 5)] += 1
    assert (taken[score == 2] == 5000).all()
    assert (taken[score < 1] == 0).all()
    assert_equal_inclusion(taken[score == 1], 2, 5000)


def test_a_task_whose_score_is_constant_has_labels_that_do_not_follow_the_rows(monkeypatch):
    prior = PriorConfig(n_labeled=(12, 12), eta_final=(2.0, 2.0), pi_final=(0.5, 0.5))
    factors = draw_factors(prior, K, 0, 0)
    monkeypatch.setattr(
        microbatch_module,
        "run_scm",
        lambda *given: (
            np.repeat(np.arange(48.0)[:, None], factors.n_features, axis=1),
            np.zeros(48),
        ),
    )
    row_of_label = {0: [], 1: []}
    for seed in range(2000):
        x, y, _ = generate_task(np.random.default_rng(seed), prior, factors)
        assert x.shape == (36, factors.n_features)
        for label in (0, 1):
            row_of_label[label].extend(np.round(x[12:, 0][y == label], 6).tolist())
    for rows in row_of_label.values():
        assert_uniform_over(rows, np.unique(rows).tolist())
        assert len(set(rows)) == 48
