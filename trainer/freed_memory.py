"""Keep the memory that a step frees in the process, for the next step."""

import ctypes

# glibc's parameters of mallopt (malloc.h), and the largest value of the second, in bytes.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _LARGEST = -1, -3, 32 << 20


def keep_freed_memory() -> None:
    """Make glibc's malloc keep freed memory; do nothing with another C library.

    A step on a CPU allocates the same tensors again and again. Each time the system would provide
    fresh pages and zero them one by one, which takes some 5 % of a step. The cost is memory: tasks
    of many shapes leave gaps that later ones do not fill, so that a process grows for some hundred
    steps before it settles: from 2.4 GB to 4.5 GB at step 368 (`configs/cpu_heads.yaml` in
    float32), to 3.3 GB at step 540 and from there on (`configs/cpu_deep.yaml` in bfloat16).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, _LARGEST)
    mallopt(_TRIM_THRESHOLD, 2**31 - 1)
