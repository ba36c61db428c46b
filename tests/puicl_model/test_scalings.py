import json

import numpy as np
import pytest
from columns_read import N, numbers

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
