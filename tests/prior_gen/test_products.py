"""The narrow products: each number a chain of fused multiply-adds, whatever the shape."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from prior_gen import products

multiply_rows = partial(products.multiply_rows, portable=False)


def random_matrices(n, k, h, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, k)).astype(np.float32)
    return x, rng.standard_normal((h, k)).astype(np.float32)


def chain(row, weights):
    """Exact arithmetic, rounded to float32 once after each step."""
    total = np.float32(0)
    for a, b in zip(row.tolist(), weights.tolist(), strict=True):
        exact = Fraction(a) * Fraction(b) + Fraction(float(total))
        total = nearest_float32(exact)
    return total


def nearest_float32(exact):
    guess = np.float32(float(exact))
    around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(9e9))]
    return min(around, key=lambda value: abs(Fraction(float(value)) - exact))


@pytest.mark.parametrize(("n", "k", "h"), [(2100, 5, 7), (700, 20, 36), (501, 36, 8), (403, 3, 97)])
def test_each_number_is_the_chain_of_fused_multiply_adds(n, k, h):
    x, weight = random_matrices(n, k, h)
    made = multiply_rows(x, weight)
    assert made.shape == (n, h)
    assert made.dtype == np.float32
    rng = np.random.default_rng(1)
    for i in [0, n - 1, n - 2, n - 3, *rng.integers(n, size=20)]:
        for j in {0, h - 1, int(rng.integers(h))}:
            assert made[i, j] == chain(x[i], weight[j]), (i, j)


@pytest.mark.parametrize("h", [1, 7, 8, 9, 16, 17, 24, 33, 40, 41, 48, 80, 81, 130])
@pytest.mark.parametrize("n", [3000, 3001, 3002, 3003])
def test_every_number_of_columns_and_of_left_over_rows_is_right_everywhere(n, h):
    x, weight = random_matrices(n, 24, h)
    exact = x.astype(np.float64) @ weight.T.astype(np.float64)
    np.testing.assert_allclose(multiply_rows(x, weight), exact, atol=2e-5, rtol=0)


def test_neither_the_layout_nor_the_number_of_rows_changes_a_bit():
    x, weight = random_matrices(1000, 30, 21)
    made = multiply_rows(x, weight)
    np.testing.assert_array_equal(multiply_rows(np.asfortranarray(x), weight), made)
    np.testing.assert_array_equal(multiply_rows(x, np.asfortranarray(weight)), made)
    np.testing.assert_array_equal(multiply_rows(x[:501], weight), made[:501])


def test_other_dtypes_and_small_products_are_numpys():
    x, weight = random_matrices(500, 20, 36)
    wide = multiply_rows(x.astype(np.float64), weight.astype(np.float64))
    np.testing.assert_array_equal(wide, x.astype(np.float64) @ weight.astype(np.float64).T)
    np.testing.assert_array_equal(multiply_rows(x[:9], weight), x[:9] @ weight.T)


def test_a_product_of_65536_multiplications_is_the_smallest_that_is_not_blas(monkeypatch):
    """Shards that exist were made so."""
    compiled, made = products._multiply_rows, []

    def spy(x, weight, out):
        made.append(len(x))
        compiled(x, weight, out)

    monkeypatch.setattr(products, "_multiply_rows", spy)
    x, weight = random_matrices(129, 16, 32)
    for n in (127, 128, 129):
        multiply_rows(x[:n], weight)
    assert made == [128, 129]
