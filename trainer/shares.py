"""Divide a step's microbatches among the processes, so that none waits long for another.

The division is a pure function of the microbatches' shapes, which every process knows. No bit
depends on it, since gradients are summed in the order of the microbatches.
"""

import math
from collections.abc import Sequence

# Number of rows at which attention between rows takes as long as everything else. Measured: some
# 1,500 on processors with tiles for attention, 150 on others. With the value here, two processes
# wait for each other at most some 1 % of the time on either.
_ROWS = 800


def cost(tasks: int, rows: int, features: int) -> float:
    """Approximate time that a microbatch takes, in arbitrary units."""
    return tasks * rows * (features + 1) * (1 + rows / _ROWS)


def shares(costs: Sequence[float], size: int) -> list[list[int]]:
    """For each of `size` processes, the ascending indices of the microbatches that it computes.

    Microbatches are assigned in order of decreasing cost, each to the process with the least load
    so far (Graham, Bounds on multiprocessing timing anomalies, 1969). No process gets more than
    ceil(len(costs) / size).
    """
    room = math.ceil(len(costs) / size)
    mine: list[list[int]] = [[] for _ in range(size)]
    load = [0.0] * size
    for index in sorted(range(len(costs)), key=lambda i: (-costs[i], i)):
        free = (rank for rank in range(size) if len(mine[rank]) < room)
        rank = min(free, key=lambda rank: (load[rank], rank))
        mine[rank].append(index)
        load[rank] += costs[index]
    return [sorted(some) for some in mine]
