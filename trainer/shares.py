"""Which process computes which microbatch of a step: so that none waits long for another.

A pure function of the microbatches' shapes, which every process knows; no bit depends on it, since
gradients are summed in the order of the microbatches.
"""

import math
from collections.abc import Sequence

# Rows of a column at which attending to each other takes as long as all else: some 1,500 were
# measured where attention has tiles, 150 where it has none. With this, two processes wait for each
# other some 1 % of the time at most, whichever it is.
_ROWS = 800


def cost(tasks: int, rows: int, features: int) -> float:
    """About how long a microbatch takes; in no unit."""
    return tasks * rows * (features + 1) * (1 + rows / _ROWS)


def shares(costs: Sequence[float], size: int) -> list[list[int]]:
    """For each of `size` processes the microbatches it computes, of one step, in order.

    The longest first, each to whom has least to do so far (Graham, Bounds on multiprocessing timing
    anomalies, 1969), but to none more than their number, shared out, allows.
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
