"""Which number of the bulk sampler stands where, and that its streams are apart."""

import math

import numpy as np
import pytest
import reference_prior as reference

from prior_gen.sampler import normals, uniforms

KEYS = [(0, 0), (0xFFFFFFFF, 0xFFFFFFFF), (0xA4093822, 0x299F31D0)]
CHUNK = 512  # counters handled together: word w of counter c + i stands at 4 c + 512 w + i


def key_array(key):
    return np.array(key, dtype=np.uint32)


def reference_words(key, stream, n_numbers):
    """Words in the order the sampler uses them, [chunks][word][counter]."""
    counters = range(-(-n_numbers // (4 * CHUNK)) * CHUNK)
    words = [reference.philox4x32((c, 0, stream, 0), key) for c in counters]
    return np.array(words, dtype=np.uint64).reshape(-1, CHUNK, 4).transpose(0, 2, 1)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("stream", [0, 3])
def test_uniforms_are_the_top_24_bits_of_the_philox_words(key, stream):
    fast = uniforms(key_array(key), stream, (2500,))
    words = reference_words(key, stream, 2500).ravel()[:2500]
    assert fast.dtype == np.float32
    np.testing.assert_array_equal(fast, (words >> np.uint64(8)).astype(np.float64) * 2.0**-24)


def test_the_scale_multiplies_and_the_shape_only_folds():
    key = key_array((5, 6))
    flat = normals(key, 2, (3000,), 1.0)
    np.testing.assert_array_equal(normals(key, 2, (10, 20, 15), 1.0).ravel(), flat)
    np.testing.assert_allclose(normals(key, 2, (3000,), 0.005), 0.005 * flat, rtol=1e-6)
    assert not normals(key, 2, (3000,), 0.0).any()


@pytest.mark.parametrize("n", [0, 1, 511, 512, 2047, 2048, 2049, 5000])
def test_a_shorter_draw_is_the_beginning_of_a_longer_one(n):
    key = key_array((7, 8))
    np.testing.assert_array_equal(normals(key, 0, (n,), 1.0), normals(key, 0, (9999,), 1.0)[:n])
    np.testing.assert_array_equal(uniforms(key, 0, (n,)), uniforms(key, 0, (9999,))[:n])


def test_streams_and_keys_share_no_numbers():
    drawn = [
        normals(key_array(key), stream, (4000,), 1.0)
        for key in ((1, 2), (2, 1), (1, 3))
        for stream in range(5)
    ]
    for i, first in enumerate(drawn):
        for second in drawn[:i]:
            # Independent float32 normals do coincide now and then.
            assert np.count_nonzero(first == second) <= 3
            assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(4000)
