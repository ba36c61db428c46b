"""Work for machine code: every part is done once, whoever does it."""

import ctypes
import functools
import sys

import numpy as np
import pytest
import torch

from puicl_model import machine_code, openmp, threads


@functools.cache
def marking():
    """Machine code that adds 1 to each of its problems' places, and to its scratch's first."""
    code = machine_code.Code("marking", ("places",), native=False)
    for index, place in ((None, code.told["places"]), (0, code.scratch)):
        with code.loop(code.sub(code.last, code.first)) as i:
            where = code.at(place, code.add(code.first, i) if index is None else index, 8)
            code.put(code.add(code.get(machine_code.I64, where, 8), code.number(1)), where, 8)
    code.ret_void()
    return machine_code.compiled(code)


@pytest.mark.parametrize("count", [2, 3, 10, 1000])
@pytest.mark.parametrize("asked", [1, 2, 5])
def test_every_problem_is_done_once(monkeypatch, parts_of_work, count, asked):
    monkeypatch.setattr(torch, "get_num_threads", lambda: asked)
    places = np.zeros(count, np.int64)
    for _ in range(20):
        threads.run(marking(), ("places",), {"places": places.ctypes.data}, count, count, 8)
    assert (places == 20).all()
    assert parts_of_work == 20 * [min(asked, count)] * (asked > 1)


def test_fewer_threads_than_parts_do_all_of_them():
    team = openmp.team()
    if team is None:
        pytest.skip("PyTorch's threads cannot be asked here")
    places, scratch = np.zeros(12, np.int64), np.zeros((4, 8), np.int64)
    numbers, bounds = np.array([places.ctypes.data]), np.array([0, 3, 6, 9, 12])
    told = (numbers, bounds, scratch)
    team(1, marking(), (*(x.ctypes.data for x in told), scratch.strides[0], 4))
    assert (places == 1).all()
    assert scratch[:, 0].tolist() == [3, 3, 3, 3]  # each part has its own


@pytest.mark.skipif(
    sys.platform != "linux" or not torch.backends.openmp.is_available(),
    reason="PyTorch has no OpenMP of GCC's protocol here",
)
def test_pytorchs_threads_are_found_on_linux():
    assert openmp.team() is not None


def test_without_openmp_there_is_no_team(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name, mode: object())
    assert openmp.team.__wrapped__() is None
