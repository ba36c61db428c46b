"""Each microbatch of a step has one process, and none waits long for another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.shares import cost, shares


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=40), st.integers(1, 9))
def test_each_microbatch_has_one_process_and_none_has_more_than_its_number(costs, size):
    shared = shares(costs, size)
    assert len(shared) == size
    assert sorted(index for some in shared for index in some) == list(range(len(costs)))
    assert max(map(len, shared)) <= -(-len(costs) // size)
    assert all(some == sorted(some) for some in shared)


@given(st.lists(st.floats(1, 100), min_size=6, max_size=40))
def test_none_has_more_to_do_than_another_by_more_than_the_longest(costs):
    if len(costs) % 2:
        costs = costs[1:]
    load = [sum(costs[index] for index in some) for some in shares(costs, 2)]
    assert abs(load[0] - load[1]) <= max(costs) + 1e-6


def test_equal_ones_are_dealt_in_order():
    assert shares([0.0] * 3, 4) == [[0], [1], [2], []]
    assert shares([2.0] * 4, 2) == [[0, 2], [1, 3]]


def test_of_random_lengths_hardly_anything_is_waited_for():
    generator = np.random.default_rng(0)
    waits = []
    for _ in range(50):
        costs = [cost(2, *shape) for shape in generator.integers([50, 2], [900, 13], (32, 2))]
        load = [sum(costs[index] for index in some) for some in shares(costs, 2)]
        waits.append(1 - np.mean(load) / max(load))
    assert np.mean(waits) < 0.01


@pytest.mark.parametrize("longer", [(3, 100, 5), (2, 150, 5), (2, 100, 7)])
def test_more_tasks_rows_and_columns_take_longer(longer):
    assert cost(*longer) > cost(2, 100, 5)
