"""Labels by rank, sizes and the PU split against the literal reference, in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import reference_prior as reference
from recording_generator import RecordingGenerator

from prior_gen.pu_split import negative_rows, split_rows
from prior_gen.sizes import ceil_count, task_sizes


def test_negatives_are_the_rows_with_the_largest_scores():
    score = np.array([3.0, -1.0, 7.0, 0.0, 5.0])
    assert set(negative_rows(np.random.default_rng(0), score, 2)) == {2, 4}
    assert set(negative_rows(np.random.default_rng(0), score, 3)) == {0, 2, 4}


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranked_labels_equal_the_reference_with_ties_and_without(seed, dtype):
    rng = np.random.default_rng(seed)
    score = rng.standard_normal(83).astype(dtype)
    if seed % 2:
        score = np.round(score)  # many ties, of zeros with and without a sign, too
    n_negative = int(rng.integers(1, 83))
    recording = RecordingGenerator(seed)
    negatives = negative_rows(recording, score, n_negative)
    labels = reference.rank_labels(score, n_negative, list(recording.permutations[0]))
    assert len(negatives) == n_negative
    assert sorted(negatives) == [row for row, label in enumerate(labels) if label == 0]


PI_GRID = [Fraction(numerator, 100) for numerator in range(10, 91)]


@pytest.mark.parametrize("n_labeled", [1, 2, 7, 100, 137, 200, 300])
def test_sizes_equal_the_papers_formulas_in_exact_arithmetic(n_labeled):
    for eta in (Fraction(1, 2), Fraction(1), Fraction(7, 5), Fraction(3, 2), Fraction(2)):
        n_unlabeled = max(reference.unlabeled_size(n_labeled, eta), 2)
        assert max(ceil_count(n_labeled * float(eta)), 2) == n_unlabeled
        for pi in PI_GRID:
            sizes = task_sizes(n_labeled, n_unlabeled, float(pi))
            n_training, n_negative = reference.pu_sizes(n_labeled, n_unlabeled, pi)
            assert sizes.n_labeled == n_labeled
            assert sizes.n_unlabeled == n_unlabeled
            assert sizes.n_labeled + sizes.n_removed == n_training
            assert sizes.n_rows == n_training + n_unlabeled
            assert sizes.n_negative == n_negative


def test_sizes_equal_the_exact_formulas_for_prevalences_off_the_grid():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        n_labeled = int(rng.integers(100, 301))
        eta, pi = rng.uniform(0.5, 2.0), rng.uniform(0.1, 0.9)
        n_unlabeled = reference.unlabeled_size(n_labeled, Fraction(eta))
        assert ceil_count(n_labeled * eta) == n_unlabeled
        sizes = task_sizes(n_labeled, n_unlabeled, pi)
        expected = reference.pu_sizes(n_labeled, n_unlabeled, Fraction(pi))
        assert (sizes.n_labeled + sizes.n_removed, sizes.n_negative) == expected


def test_the_unlabelled_part_always_has_both_classes_and_is_within_a_row_of_its_prevalence():
    moved = 0
    for n_labeled in (1, 2, 3, 10, 100):
        for n_unlabeled in (2, 3, 5, 40, 150):
            for pi in (*map(float, PI_GRID), 0.001, 0.999):
                sizes = task_sizes(n_labeled, n_unlabeled, pi)
                negatives = sizes.n_negative - sizes.n_removed
                assert 1 <= negatives <= n_unlabeled - 1
                assert sizes.n_removed >= 1
                exact = Fraction(str(pi)) * n_unlabeled
                if 1 <= exact <= n_unlabeled - 1:
                    assert abs(negatives - exact) <= 1
                else:
                    moved += 1
                    # The formula's own count, moved by at most what both classes need.
                    assert min(abs(negatives - 1), abs(negatives - n_unlabeled + 1)) <= 1
    assert moved > 0


@pytest.mark.parametrize("value", [100 / (1 - 0.9), 0.1 * 30, 3.0, 1000.0])
def test_a_ceiling_ignores_the_rounding_of_floating_point(value):
    assert ceil_count(value) == round(value)
    assert ceil_count(value + 1e-3) == round(value) + 1
    assert ceil_count(value - 1e-3) == round(value)


@pytest.mark.parametrize("seed", range(30))
def test_the_split_equals_the_reference_on_the_same_permutations(seed):
    rng = np.random.default_rng(seed)
    n_labeled, n_unlabeled = int(rng.integers(3, 30)), int(rng.integers(2, 50))
    pi = [0.02, 0.98, rng.uniform(0.1, 0.9)][min(seed, 2)]
    sizes = task_sizes(n_labeled, n_unlabeled, pi)
    score = rng.standard_normal(sizes.n_rows)
    recording = RecordingGenerator(seed)
    negatives = negative_rows(recording, score, sizes.n_negative)
    rows, y = split_rows(recording, negatives, sizes)
    tie_order, positive_order, negative_order, unlabeled_order = map(list, recording.permutations)
    labels = reference.rank_labels(score, sizes.n_negative, tie_order)
    expected_rows, expected_y = reference.pu_split(
        labels, n_labeled, sizes.n_removed, positive_order, negative_order, unlabeled_order
    )
    assert rows.tolist() == expected_rows
    assert y.tolist() == expected_y
    assert y.dtype == np.uint8
    assert len(set(rows.tolist())) == n_labeled + n_unlabeled
    assert 0 < y.sum() < n_unlabeled
