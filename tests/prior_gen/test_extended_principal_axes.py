"""Tables turned to their principal axes, as the classifier turns them."""

import numpy as np
import pytest
from extended import extended_by, microbatches

from prior_gen.extensions.principal_axes import principal_axes
from puicl_model.preprocessing.principal import PrincipalAxes


def table(seed, n=500, d=6):
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((d, d))
    return (rng.standard_normal((n, d)) @ mixing).astype(np.float32)


def turned(x, seed=0, clip=20.0):
    return principal_axes(np.random.default_rng(seed), x, clip)


@pytest.mark.parametrize("d", [1, 3, 7, 20])
def test_axes_are_the_classifiers_in_random_order(d):
    for seed in range(5):
        x = table(seed, d=d)
        ours, theirs = turned(x, seed), PrincipalAxes(x)(x)
        assert ours.dtype == np.float32
        # The classifier shortens what lies beyond four standard deviations, first.
        inside = np.abs(theirs).max(axis=1) < 3
        distance = np.abs(ours[inside][:, :, None] - theirs[inside][:, None]).max(axis=0)
        np.testing.assert_allclose(distance.min(axis=1), 0, atol=0.05)
        assert sorted(distance.argmin(axis=1)) == [*range(d)]


def test_they_are_uncorrelated_of_unit_variance_and_each_has_its_largest_loading_positive():
    x = table(1)
    z = turned(x).astype(np.float64)
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(6), atol=1e-4)
    # Of one axis: the loadings are its covariances with the columns over its own variance.
    loadings = np.linalg.lstsq(z, (x - x.mean(0)) / x.std(0), rcond=None)[0]
    largest = np.take_along_axis(loadings, np.abs(loadings).argmax(axis=1)[:, None], 1)
    assert (largest > 0).all()


def test_order_is_random_and_the_generators_own():
    x = table(2)
    assert {turned(x, seed)[0].tobytes() for seed in range(8)} != {turned(x)[0].tobytes()}
    np.testing.assert_array_equal(turned(x, 3), turned(x, 3))


def test_copies_and_constants_leave_constant_columns():
    x = table(3, d=3)
    x = np.c_[x, x[:, :1], np.ones(len(x), np.float32)]
    assert sorted(np.round(turned(x).std(axis=0), 3)) == [0, 0, 1, 1, 1]
    assert not turned(np.ones((9, 2), np.float32)).any()


@pytest.mark.parametrize(("noise", "kept"), [(0.01, 9), (0.02, 10)])
def test_an_axis_of_less_than_a_hundred_thousandth_of_the_variance_is_constant(noise, kept):
    """A near copy leaves an axis of noise^2 / 2, of a variance of ten columns."""
    x = np.random.default_rng(0).standard_normal((2000, 10))
    x[:, 9] = x[:, 0] + noise * x[:, 9]
    assert np.count_nonzero(turned(x.astype(np.float32)).std(axis=0)) == kept
    assert PrincipalAxes(x)(x).shape[1] == kept  # as the classifier has it


def test_cells_are_clipped():
    x = np.zeros((2000, 2), np.float32)
    x[0] = 1.0
    assert np.abs(turned(x)).max() == 20.0


def test_a_turned_task_is_the_same_task_by_any_linear_model():
    plain, axes = (microbatches(6, principal_axes=p, normal_scores=1.0) for p in (0.0, 1.0))
    for before, after in zip(plain, axes, strict=True):
        np.testing.assert_array_equal(before.y, after.y)
        if "principal_axes" not in after.tags["extensions"]:
            assert before.x.shape[2] == 1
            continue
        for x, z in zip(before.x.astype(float), after.x.astype(float), strict=True):
            x = np.c_[x, np.ones(len(x))]
            residual = z - x @ np.linalg.lstsq(x, z, rcond=None)[0]
            assert np.abs(residual).max() < 0.05


def test_blanks_are_filled_before_a_table_is_turned():
    batches = microbatches(6, {"n_features": (3, 6)}, principal_axes=1.0, missing=1.0)
    for batch, _ in extended_by("principal_axes", batches):
        for z in batch.x.astype(float):
            spread = z.std(axis=0)
            np.testing.assert_allclose(spread[spread > 0.1], 1, atol=0.02)
            assert np.mean(z == 0) < 0.05


def test_tables_of_levels_alone_are_not_turned():
    whole = microbatches(20, principal_axes=1.0, discrete=1.0, n_features=(2, 6))
    for batch in whole:
        tags = batch.tags["extensions"]
        assert ("principal_axes" in tags) == (0 in tags["discrete"]["levels"])
    designs = microbatches(5, principal_axes=1.0, rule_labels=1.0, factorial=1.0)
    assert not any("principal_axes" in batch.tags["extensions"] for batch in designs)
