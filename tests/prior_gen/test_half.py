"""Rounding to float16 is numpy's, for every float16, what lies between two, and beyond."""

import numpy as np
import pytest

from prior_gen.half import to_half


def test_every_half_and_every_midpoint_and_its_neighbours_round_as_numpy_rounds():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves = halves[np.isfinite(halves)]
    above = np.append(np.unique(halves)[1:], np.float32(65504))
    middles = (np.unique(halves) + above) / 2
    edges = np.array([65504, 65519.996, 65520, 65536, 1e6, 2.0**-25, 2.0**-26, 1e-45, 0, np.inf])
    x = np.concatenate([halves, middles, edges, -edges]).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, -np.inf)])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    np.testing.assert_array_equal(to_half(x).view(np.uint16), expected.view(np.uint16))


def test_a_blank_cell_stays_blank_and_shapes_and_layouts_are_kept():
    x = np.random.default_rng(0).normal(size=(5, 7, 3)).astype(np.float32)
    x[1, 2, 0] = np.nan
    for values in (x, x.transpose(2, 0, 1), x[:, ::2]):
        made, expected = to_half(values), values.astype(np.float16)
        assert made.shape == expected.shape
        assert made.tobytes() == expected.tobytes()


@pytest.mark.parametrize("shape", [(0,), (1,), (17, 0)])
def test_small_and_empty_arrays_are_rounded_too(shape):
    assert (
        to_half(np.full(shape, 0.1, np.float32)).tolist()
        == np.full(shape, 0.1, np.float16).tolist()
    )
