"""The bulk sampler: its words, its arithmetic and its distribution."""

import numpy as np
import pytest
from scipy import stats

from prior_gen.sampler import _philox, normals, uniforms

KEY = np.array([20, 26], np.uint32)


def words(key, stream, start):
    out = np.empty((4, 512), np.uint32)
    _philox(np.array(key, np.uint32), np.uint32(stream), start, out)
    return out


def literal_philox(counter, key):
    """Philox4x32-10 of Salmon et al. (2011), in Python's integers."""
    x, k, mask = list(counter), list(key), 2**32 - 1
    for _ in range(10):
        first, second = x[0] * 0xD2511F53, x[2] * 0xCD9E8D57
        x = [(second >> 32) ^ x[1] ^ k[0], second & mask, (first >> 32) ^ x[3] ^ k[1], first & mask]
        k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
    return x


def test_the_words_are_philoxs_published_ones_and_the_literal_algorithms():
    # The known answers of the authors' Random123 for counter and key zero.
    assert [hex(w) for w in words((0, 0), 0, 0)[:, 0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]
    for key, stream, start in (((1, 2), 3, 0), ((2**32 - 1, 7), 2**31, 2**32 - 100)):
        fast = words(key, stream, start)
        for i in (0, 1, 99, 100, 511):
            low, high = (start + i) % 2**32, (start + i) >> 32
            assert fast[:, i].tolist() == literal_philox((low, high, stream, 0), key)


def test_a_normal_is_box_mullers_to_a_few_units_of_the_last_place():
    n = 4 * 512
    w = words(KEY, 5, 0).astype(np.float64)
    expected = []
    for radius_words, angle_words in ((w[0], w[1]), (w[2], w[3])):
        radius = np.sqrt(-2 * np.log((radius_words + 0.5) / 2**32))
        signed = np.where(angle_words < 2**31, angle_words, angle_words - 2**32)
        angle = 2 * np.pi * signed / 2**32
        expected += [radius * np.cos(angle), radius * np.sin(angle)]
    made = normals(KEY, 5, (n,), 1.0).reshape(4, 512)
    np.testing.assert_allclose(made, np.array(expected), atol=4e-6)


def test_normals_have_the_moments_and_the_distribution_of_normals():
    n = 2_000_000
    x = normals(KEY, 0, (n,), 1.0).astype(np.float64)
    z = [
        x.mean() * np.sqrt(n),
        (x.var() - 1) * np.sqrt(n / 2),
        stats.skew(x) * np.sqrt(n / 6),
        stats.kurtosis(x) * np.sqrt(n / 24),
    ]
    assert np.abs(z).max() < 4
    assert stats.kstest(x, "norm").pvalue > 1e-3
    expected = n * 2 * stats.norm.sf(4)
    assert abs((np.abs(x) > 4).sum() - expected) < 4 * np.sqrt(expected)
    for lag in (1, 2, 511, 512, 1024, 2048):
        assert abs(np.corrcoef(x[:-lag], x[lag:])[0, 1]) * np.sqrt(n) < 4.5, lag
        assert abs(np.corrcoef(x[:-lag] ** 2, x[lag:] ** 2)[0, 1]) * np.sqrt(n) < 4.5, lag


def test_uniforms_fill_the_unit_interval_evenly():
    u = uniforms(KEY, 1, (1_000_000,))
    assert 0 <= u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert np.array_equal(u * 2**24, np.round(u * 2**24))


def test_keys_and_streams_are_unrelated_and_a_longer_draw_begins_like_a_shorter():
    n = 200_000
    base = normals(KEY, 0, (n,), 1.0)
    assert np.array_equal(normals(KEY, 0, (777,), 1.0), base[:777])
    others = [
        normals(KEY, 1, (n,), 1.0),
        normals(KEY + np.uint32([1, 0]), 0, (n,), 1.0),
        normals(KEY + np.uint32([0, 1]), 0, (n,), 1.0),
    ]
    for other in others:
        assert not np.isin(other[:1000], base).all()
        assert abs(np.corrcoef(base, other)[0, 1]) * np.sqrt(n) < 4.5


@pytest.mark.parametrize("shape", [(0,), (1,), (2047,), (2048,), (2049,), (3, 5, 7)])
def test_every_shape_is_filled_and_scaled(shape):
    x = normals(KEY, 2, shape, 0.01)
    assert x.shape == shape
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, normals(KEY, 2, shape, 1.0) * 0.01, rtol=1e-5, atol=1e-9)
