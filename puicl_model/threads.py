"""Calls machine code for many problems, shared out among threads."""

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

# Numbers a thread should have to work on, lest starting it costs more than it saves.
_WORTH_A_THREAD = 1 << 18


def run(
    function: Callable,
    parameters: Sequence[str],
    told: Mapping[str, int],
    count: int,
    work: int,
    scratch_bytes: int = 0,
) -> None:
    """Call a function of `machine_code.compiled` for the problems 0 to `count`.

    told: what it is told, by the names in `parameters`; zero where nothing is. `work`: how many
    numbers there are in all. Each thread has `scratch_bytes` of its own.
    """
    numbers = np.array([told.get(key, 0) for key in parameters], np.int64)
    parts = max(1, min(torch.get_num_threads(), count, work // _WORTH_A_THREAD))
    scratch = torch.empty(parts, -(-scratch_bytes // 64) * 64, dtype=torch.uint8)
    bounds = [count * i // parts for i in range(parts + 1)]
    calls = [(numbers.ctypes.data, *bounds[i : i + 2], scratch[i].data_ptr()) for i in range(parts)]
    threads = [threading.Thread(target=function, args=call) for call in calls[1:]]
    for thread in threads:
        thread.start()
    function(*calls[0])
    for thread in threads:
        thread.join()
