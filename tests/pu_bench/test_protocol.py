"""The benchmark's protocol: who is labelled, who hides, and how many."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from pu_bench import METHODS, split_pu


@pytest.mark.parametrize(
    ("positives", "negatives", "labeled", "hidden", "kept"),
    [
        (357, 212, 119, 238, 212),  # fewer negatives than hidden positives: all of them
        (1000, 900, 200, 400, 400),  # the cap of 600 positives, negatives matched
        (600, 5000, 200, 400, 400),
        (100, 100, 33, 67, 67),
    ],
)
def test_a_third_is_labelled_and_negatives_match(positives, negatives, labeled, hidden, kept):
    positive = np.arange(positives + negatives) < positives
    x = np.arange(positives + negatives, dtype=float)[:, np.newaxis]
    task = split_pu(x, positive, seed=3)
    assert task.n_labeled == labeled
    assert (task.y.sum(), len(task.y)) == (hidden, hidden + kept)
    rows = task.x[:, 0].astype(int)
    assert len(set(rows)) == len(rows)
    assert positive[rows[:labeled]].all()
    np.testing.assert_array_equal(positive[rows[labeled:]], task.y.astype(bool))
    assert task.s.tolist() == [1] * labeled + [0] * (hidden + kept)


def test_seeds_give_other_rows_and_the_same_seed_the_same():
    positive = np.arange(400) < 250
    x = np.arange(400.0)[:, np.newaxis]
    first, again, other = (split_pu(x, positive, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)
    # Hidden classes are shuffled together: the order of rows tells nothing.
    assert 0.35 < first.y[: len(first.y) // 2].mean() / first.y.mean() / 2 < 0.65


def test_the_logistic_baseline_ranks_and_calibrates_two_gaussians():
    rng = np.random.default_rng(0)
    positive = np.arange(1200) < 600
    x = rng.normal(size=(1200, 3)) + 2.0 * positive[:, np.newaxis]
    task = split_pu(x, positive, seed=0)
    score = METHODS["logistic"]().fit_predict(task.P, task.U, 0).score
    assert roc_auc_score(task.y, score) > 0.97
    assert ((score >= 0.5) == task.y).mean() > 0.85
    assert score.min() >= 0
    assert score.max() <= 1


def test_negatives_and_capped_positives_are_drawn_from_all_of_the_table():
    positive = np.arange(6000) < 3000
    drawn = [split_pu(np.arange(6000.0)[:, None], positive, seed) for seed in range(4)]
    for kind, first in ((1, 0), (0, 3000)):
        rows = np.concatenate([task.U[task.y == kind, 0] for task in drawn])
        assert abs(rows.mean() - first - 1500) < 100
    assert abs(np.concatenate([task.P[:, 0] for task in drawn]).mean() - 1500) < 150
