"""The bulk sampler: normals and uniforms in float32, several times faster than numpy's.

A task needs some 145,000 normals, nearly all of them noise; numpy's generator would account for
most of its cost. Here every number is a pure function of (key, stream, position): Philox4x32-10
(Salmon et al., 2011) turns the position into four 32-bit words, and Box-Muller turns pairs of
words into pairs of normals. All of this is elementwise float32 arithmetic that compilers vectorise.
Logarithm, sine and cosine are polynomials, accurate to a few units in the last place, so that the
result depends on no mathematical library. The largest magnitude is sqrt(2 ln 2^33) = 6.8.
"""

import numpy as np

from prior_gen.jitted import jit

# Positions handled together, few enough for the working set to stay in the first-level cache.
_BLOCK = 512


def normals(key: np.ndarray, stream: int, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Draw N(0, scale^2) of `shape`, float32. key: uint32 [2]; its streams never overlap."""
    out = np.empty(shape, np.float32)
    _fill_normals(key, np.uint32(stream), np.float32(scale), out.reshape(-1))
    return out


def uniforms(key: np.ndarray, stream: int, shape: tuple[int, ...]) -> np.ndarray:
    """Draw uniforms on [0, 1) of `shape`: float32 multiples of 2^-24. key: uint32 [2]."""
    out = np.empty(shape, np.float32)
    _fill_uniforms(key, np.uint32(stream), out.reshape(-1))
    return out


@jit
def _philox(key, stream, start, words):
    """Fill `words` [4, BLOCK] from the counters (start .. start + BLOCK - 1, stream, 0)."""
    for i in range(_BLOCK):
        counter = np.uint64(start) + np.uint64(i)
        x0, x1 = np.uint32(counter), np.uint32(counter >> np.uint64(32))
        x2, x3 = stream, np.uint32(0)
        k0, k1 = key[0], key[1]
        for _ in range(10):
            p0 = np.uint64(x0) * np.uint64(0xD2511F53)
            p1 = np.uint64(x2) * np.uint64(0xCD9E8D57)
            x0, x2 = (
                np.uint32(p1 >> np.uint64(32)) ^ x1 ^ k0,
                np.uint32(p0 >> np.uint64(32)) ^ x3 ^ k1,
            )
            x1, x3 = np.uint32(p1), np.uint32(p0)
            k0 = np.uint32(k0 + np.uint32(0x9E3779B9))
            k1 = np.uint32(k1 + np.uint32(0xBB67AE85))
        words[0, i], words[1, i], words[2, i], words[3, i] = x0, x1, x2, x3


@jit
def _box_muller(radius_words, angle_words, scale, first, second):
    """Turn two arrays of words into two arrays of normals, all [BLOCK]."""
    bits = first.view(np.int32)
    for i in range(_BLOCK):  # uniform on (0, 1], symmetric about its middle
        first[i] = np.float32(radius_words[i]) * np.float32(2.0**-32) + np.float32(2.0**-33)
    for i in range(_BLOCK):  # mantissa in [sqrt(1/2), sqrt(2)) and exponent
        exponent = (bits[i] - np.int32(0x3F3504F3)) >> np.int32(23)
        bits[i] -= exponent << np.int32(23)
        second[i] = np.float32(exponent)
    for i in range(_BLOCK):
        t = first[i] - np.float32(1.0)
        p = np.float32(7.0376836292e-2)
        p = p * t + np.float32(-1.1514610310e-1)
        p = p * t + np.float32(1.1676998740e-1)
        p = p * t + np.float32(-1.2420140846e-1)
        p = p * t + np.float32(1.4249322787e-1)
        p = p * t + np.float32(-1.6668057665e-1)
        p = p * t + np.float32(2.0000714765e-1)
        p = p * t + np.float32(-2.4999993993e-1)
        p = p * t + np.float32(3.3333331174e-1)
        t2 = t * t
        log = p * t * t2 - np.float32(0.5) * t2 + t + second[i] * np.float32(0.69314718056)
        radius = np.sqrt(np.float32(-2.0) * min(log, np.float32(0.0))) * scale

        turn = np.float32(np.int32(angle_words[i])) * np.float32(2.0**-32)  # [-1/2, 1/2]
        half = np.float32(turn > np.float32(0.25)) - np.float32(turn < np.float32(-0.25))
        angle = (turn - np.float32(0.5) * half) * np.float32(6.2831853072)  # [-pi/2, pi/2]
        sign = np.float32(1.0) - np.float32(2.0) * half * half
        a2 = angle * angle
        sine = np.float32(2.5904300855e-6)
        sine = sine * a2 + np.float32(-1.9800865266e-4)
        sine = sine * a2 + np.float32(8.3328988403e-3)
        sine = sine * a2 + np.float32(-1.6666647792e-1)
        sine = sine * a2 * angle + angle
        cosine = np.float32(-2.6051077384e-7)
        cosine = cosine * a2 + np.float32(2.4760134693e-5)
        cosine = cosine * a2 + np.float32(-1.3888360700e-3)
        cosine = cosine * a2 + np.float32(4.1666634381e-2)
        cosine = cosine * a2 + np.float32(-0.5)
        cosine = cosine * a2 + np.float32(1.0)
        first[i] = radius * cosine * sign
        second[i] = radius * sine * sign


@jit
def _fill_normals(key, stream, scale, out):
    words = np.empty((4, _BLOCK), np.uint32)
    values = np.empty((4, _BLOCK), np.float32)
    flat = values.reshape(-1)
    for done in range(0, out.size, 4 * _BLOCK):
        size = min(4 * _BLOCK, out.size - done)
        _philox(key, stream, done // 4, words)
        _box_muller(words[0], words[1], scale, values[0], values[1])
        if size > 2 * _BLOCK:
            _box_muller(words[2], words[3], scale, values[2], values[3])
        out[done : done + size] = flat[:size]


@jit
def _fill_uniforms(key, stream, out):
    words = np.empty((4, _BLOCK), np.uint32)
    flat = words.reshape(-1)
    for done in range(0, out.size, 4 * _BLOCK):
        _philox(key, stream, done // 4, words)
        size = min(4 * _BLOCK, out.size - done)
        for i in range(size):
            out[done + i] = np.float32(flat[i] >> np.uint32(8)) * np.float32(2.0**-24)
