"""Run machine code on many problems, divided among threads."""

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

# Least work per thread, in numbers: for less, starting a thread costs more than it saves.
_WORTH_A_THREAD = 1 << 16


def run(
    function: Callable,
    parameters: Sequence[str],
    told: Mapping[str, int],
    count: int,
    work: int,
    scratch_bytes: int = 0,
) -> None:
    """Run a function of `machine_code.compiled` on the problems 0 to `count` - 1.

    parameters: names of its parameters; told: their values, zero for missing names; work: how many
    numbers there are in total; scratch_bytes: scratch memory for each thread.
    """
    numbers = np.array([told.get(key, 0) for key in parameters], np.int64)
    threads = torch.get_num_threads()
    parts = max(1, min(threads, count, work // _WORTH_A_THREAD))
    scratch = torch.empty(parts, -(-scratch_bytes // 64) * 64, dtype=torch.uint8, device="cpu")
    bounds = np.array([count * i // parts for i in range(parts + 1)], np.int64)
    if parts == 1:
        function(numbers.ctypes.data, 0, count, scratch.data_ptr())
    elif (shared := _team()) is not None:
        places = (numbers.ctypes.data, bounds.ctypes.data, scratch.data_ptr(), scratch.stride(0))
        # Always as many threads as PyTorch uses, even if some are idle: changing the number would
        # end and start threads each time.
        shared(threads, function, (*places, parts))
    else:
        _in_own_threads(function, numbers, bounds.tolist(), scratch)


def _team() -> Callable | None:
    from puicl_model import openmp

    return openmp.team()


def _in_own_threads(function, numbers, bounds: list[int], scratch: torch.Tensor) -> None:
    calls = [
        (numbers.ctypes.data, *bounds[i : i + 2], scratch[i].data_ptr())
        for i in range(len(scratch))
    ]
    threads = [threading.Thread(target=function, args=call) for call in calls[1:]]
    for thread in threads:
        thread.start()
    function(*calls[0])
    for thread in threads:
        thread.join()
