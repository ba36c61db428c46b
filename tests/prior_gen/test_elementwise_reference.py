"""Activations and standardisation against the literal reference, number by number."""

import numpy as np
import pytest
import reference_prior as reference

from prior_gen.activations import BANK, activate
from prior_gen.standardization import standardize
from puicl_config import ACTIVATIONS

CLIP = 20.0
TEN = ("tanh", "relu", "gelu", "identity", "sign", "step", "rbf", "sin", "square", "abs")


def test_the_bank_holds_exactly_the_papers_ten_nonlinearities():
    assert sorted(BANK) == sorted(TEN)
    assert sorted(ACTIVATIONS) == sorted(TEN)
    assert sorted(reference.ACTIVATION_FORMULAS) == sorted(TEN)


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_activation_equals_its_formula_and_keeps_its_dtype(name, dtype):
    x = np.concatenate([np.linspace(-6, 6, 481), [0.0, -0.0, 1e-30, -1e-30, 1e3, -1e3, 1e6, -1e6]])
    x = x.astype(dtype)
    y = BANK[name](x)
    assert y.dtype == dtype
    expected = np.array([reference.ACTIVATION_FORMULAS[name](float(v)) for v in x])
    eps = np.finfo(dtype).eps
    # 1 + erf(x / sqrt(2)) cancels for negative x, and exp magnifies the rounding of x^2.
    scale = {"gelu": np.abs(x), "rbf": np.minimum(1.0, (1 + x**2) * expected)}.get(
        name, np.abs(expected)
    )
    np.testing.assert_array_less(np.abs(y - expected), 8 * eps * scale + 1e-30)


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("portable", [False, True])
def test_an_activation_is_of_the_clamped_state(name, dtype, portable):
    x = np.array([[-9, -2.5, -2.4, -0.0], [0, 1e-30, 2.6, 1e30]], dtype)
    before = x.copy()
    y = activate(name, x, 2.5, portable)
    assert y.dtype == dtype
    formula = reference.ACTIVATION_FORMULAS[name]
    expected = [[formula(min(max(float(v), -2.5), 2.5)) for v in row] for row in x]
    np.testing.assert_allclose(y, expected, rtol=2e-6 if dtype == np.float32 else 1e-14, atol=1e-15)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize("name", TEN)
def test_an_activation_does_not_depend_on_the_memory_layout_of_its_input(name):
    x = np.linspace(-3, 3, 60, dtype=np.float32).reshape(10, 6)
    expected = BANK[name](x)
    np.testing.assert_array_equal(BANK[name](np.asfortranarray(x)), expected)
    np.testing.assert_array_equal(BANK[name](np.repeat(x, 2, axis=1)[:, ::2]), expected)


def test_standardising_equals_the_reference_and_clips():
    rng = np.random.default_rng(0)
    table = rng.standard_cauchy((900, 6)) * [1, 1e-3, 1e6, 1, 1, 1] + [0, 5, 1e6, -3, 0, 0]
    table[:, 4] = 0.0
    table[17, 4] = 1.0  # standardises to sqrt(899), beyond the clip
    table[:, 5] = 0.1
    fast = standardize(table, CLIP)
    np.testing.assert_allclose(
        fast, reference.standardize_table(table.tolist(), CLIP), rtol=0, atol=1e-9
    )
    assert fast[17, 4] == CLIP
    assert np.abs(fast).max() == CLIP


def test_a_standardised_column_has_zero_mean_and_unit_population_variance():
    values = np.random.default_rng(0).gamma(2.0, size=(500, 4))
    fast = standardize(values, CLIP)
    np.testing.assert_allclose(fast.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose((fast**2).mean(axis=0), 1, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6, 3e13, 1e-38])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_column_becomes_zero_beside_one_that_is_not(value, dtype):
    table = np.full((777, 2), value, dtype=dtype)
    table[:, 1] = np.arange(777)
    fast = standardize(table, CLIP)
    np.testing.assert_array_equal(fast[:, 0], 0.0)
    assert fast[:, 1].std() == pytest.approx(1.0)
    np.testing.assert_array_equal(standardize(table[:, 0], CLIP), np.zeros(777))


def test_rounding_noise_on_a_constant_is_zero_but_the_smallest_scm_noise_is_not():
    rng = np.random.default_rng(0)
    constant = np.float32(1e5) * np.ones(500, dtype=np.float32)
    constant[::2] = np.nextafter(constant[0], np.float32(np.inf))
    np.testing.assert_array_equal(standardize(constant, CLIP), 0.0)
    noisy = (100 + 0.005 * rng.standard_normal(500)).astype(np.float32)
    assert standardize(noisy, CLIP).std() == pytest.approx(1.0)
