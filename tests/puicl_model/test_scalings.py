import json

import numpy as np
import pytest
from columns_read import N, numbers
from scipy.special import ndtri
from scipy.stats import rankdata

from puicl_model.preprocessing import (
    ROTATED,
    SCALINGS,
    TURNED,
    fit_scaling,
    scaling_from_state,
)


@pytest.mark.parametrize("kind", SCALINGS)
@pytest.mark.parametrize(("scale", "offset"), [(1e-250, 0), (1e250, 0), (-3, 1e6)])
def test_scalings_undo_units_and_origin(kind, scale, offset):
    scale = abs(scale) if kind in ROTATED else scale  # of which a mirrored table is another
    x = np.column_stack([numbers(), numbers(1)])
    new = np.column_stack([numbers(2), numbers(3)])
    moved = [a * [scale, 1] + [offset, 0] for a in (x, new)]
    plain, other = fit_scaling(x, kind), fit_scaling(moved[0], kind)
    sign = np.array([np.sign(scale), 1])
    for a, b in ((x, moved[0]), (new, moved[1])):
        expected, found = plain(a) * sign, other(b)
        if kind in TURNED:  # whose axes have no sign of their own
            expected, found = np.abs(expected), np.abs(found)
        np.testing.assert_allclose(expected, found, atol=1e-5)
    assert np.abs(plain(x)).max() < 5


@pytest.mark.parametrize("kind", ["quantile", "uniform"])
def test_scalings_by_rank_undo_every_increasing_change_of_fitted_values(kind):
    x = numbers()[:, None]
    np.testing.assert_allclose(
        fit_scaling(x, kind)(x), fit_scaling(np.exp(5 * x), kind)(np.exp(5 * x)), atol=1e-6
    )


def test_the_uniform_scaling_is_ranks_standardised():
    x = np.column_stack([np.repeat([0.0, 3.0, 4.0, 90.0], [1, 4, 1, 2]), np.full(8, 7.0)])
    ranks = np.repeat([1, 3.5, 6, 7.5], [1, 4, 1, 2])
    scaling = fit_scaling(x, "uniform")
    expected = (ranks - ranks.mean()) / ranks.std()
    np.testing.assert_allclose(scaling(x), np.column_stack([expected, np.zeros(8)]), atol=1e-6)
    # Between fitted values by distance, beyond them as the last of them.
    new = np.array([[47.0, 7.0], [1e9, 8.0], [-5.0, 6.0]])
    beyond = [(expected[5] + expected[7]) / 2, expected[7], expected[0]]
    np.testing.assert_allclose(scaling(new)[:, 0], beyond, atol=1e-6)


@pytest.mark.parametrize("kind", SCALINGS)
def test_scalings_stay_finite_for_any_row_and_survive_json(kind):
    x = np.column_stack([numbers() * 1e300, np.zeros(N), numbers() ** 9])
    scaling = fit_scaling(x, kind)
    wild = np.array([[1.7e308, 5e-324, -1.7e308], [-1.7e308, 1e308, 0]])
    assert np.isfinite(scaling(np.concatenate([x, wild]))).all()
    again = scaling_from_state(json.loads(json.dumps(scaling.state(), default=np.ndarray.tolist)))
    np.testing.assert_array_equal(again(wild), scaling(wild))


@pytest.mark.parametrize("kind", ["standard", "robust"])
def test_standard_and_robust_numbers_are_those_of_the_docstring(kind):
    x = np.random.default_rng(0).lognormal(size=(200, 1))
    low, middle, high = np.quantile(x, [0.25, 0.5, 0.75])
    center, spread = (x.mean(), x.std()) if kind == "standard" else (middle, (high - low) / 1.349)
    new = center + spread * np.array([[-90.0], [-4], [-1], [0], [3.9], [4], [5], [1e6]])
    z = (new - center) / spread
    far = np.sign(z) * (4 + np.log1p(np.maximum(np.abs(z) - 4, 0)))
    expected = np.where(np.abs(z) <= 4, z, far)
    np.testing.assert_allclose(fit_scaling(x, kind)(new), expected, rtol=1e-5, atol=1e-6)


def test_the_robust_scaling_takes_the_standard_deviation_where_quartiles_are_equal():
    x = np.where(np.arange(100) < 10, 5.0, 0.0)[:, None]
    np.testing.assert_allclose(fit_scaling(x, "robust")(x), x / x.std(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["quantile", "uniform"])
def test_of_more_than_a_thousand_values_the_ranks_stay_and_so_do_both_ends(kind):
    x = np.random.default_rng(0).normal(size=(5000, 1)) ** 3
    ranks = (rankdata(x) - 0.5) / 5000
    expected = ndtri(ranks) if kind == "quantile" else (ranks - 0.5) / ranks.std()
    found = fit_scaling(x, kind)(x)[:, 0]
    np.testing.assert_allclose(found, expected, atol=0.01 if kind == "uniform" else 0.3)
    for end in (x.argmin(), x.argmax()):
        assert found[end] == pytest.approx(expected[end], abs=1e-6)


def test_the_quantile_scaling_is_normal_quantiles_of_middle_ranks():
    x = np.array([3.0, 1, 2, 2])[:, None]
    expected = ndtri([0.875, 0.125, 0.5, 0.5])
    np.testing.assert_allclose(fit_scaling(x, "quantile")(x)[:, 0], expected, atol=1e-6)
