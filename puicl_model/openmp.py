"""The threads that PyTorch's operators run on, for machine code.

OpenMP's threads spin for a while after each operator, waiting for the next one; threads of our own
would fight them for the cores. So they are asked to do our work, too.
"""

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from llvmlite import ir

from puicl_model.machine_code import I32, I64, finished

# What a worker is told: two functions of OpenMP's, ours, its arguments, and into how many parts
# the work falls.
_TOLD = ("place", "size", "function", "numbers", "bounds", "scratch", "stride", "parts")

_CALLED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")


@functools.cache
def team() -> Callable[[int, Any, tuple[int, ...]], None] | None:
    """A function (threads, machine code, (numbers, bounds, scratch, stride, parts)), if it can be.

    It calls the code once for each part, with the addresses of its numbers and of this part's
    scratch, `stride` bytes apart, and the part's two bounds. None without an OpenMP in the process
    that speaks GCC's protocol, as on Linux it does.
    """
    runtime = _runtime()
    if runtime is None:
        return None
    parallel = runtime.GOMP_parallel
    asked = [
        _address(getattr(runtime, name)) for name in ("omp_get_thread_num", "omp_get_num_threads")
    ]
    worker = _worker()
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    parallel.restype = None
    begin = ctypes.cast(worker, ctypes.c_void_p)

    def run(threads: int, function, arguments: tuple[int, ...]) -> None:
        told = (ctypes.c_int64 * len(_TOLD))(*asked, _address(function), *arguments)
        parallel(begin, ctypes.addressof(told), threads, 0)

    run.worker = worker  # type: ignore[attr-defined]  # its code lives as long
    return run


def _runtime() -> ctypes.CDLL | None:
    """PyTorch's OpenMP: among all names of the process, or, as on ARM, in its own file alone."""
    own = sorted(map(str, Path(torch.__file__).parent.glob("lib/libgomp*")))
    for name in (None, *own):
        try:
            # What is not loaded yet is nobody's, and its threads would be others.
            loaded = ctypes.CDLL(name, getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_LAZY)
            if all(hasattr(loaded, function) for function in _CALLED):
                return loaded
        except (AttributeError, OSError, TypeError):  # Windows has no such library, nor such modes
            continue
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _worker():
    """Machine code: what each thread of a team does with what `_TOLD` names."""
    module = ir.Module("openmp worker")
    kind = ir.FunctionType(ir.VoidType(), [I64])
    function = ir.Function(module, kind, "worker")
    code = ir.IRBuilder(function.append_basic_block())

    def read(base, index):
        address = code.add(base, code.mul(index, I64(8)))
        return code.load(code.inttoptr(address, I64.as_pointer()))

    def called(address, returns, *arguments):
        kind = ir.FunctionType(returns, [x.type for x in arguments])
        return code.call(code.inttoptr(address, kind.as_pointer()), arguments)

    told = {name: read(function.args[0], I64(i)) for i, name in enumerate(_TOLD)}
    first, step = (code.sext(called(told[name], I32), I64) for name in ("place", "size"))
    start = code.block
    loop, body, end = (code.append_basic_block(name) for name in ("loop", "body", "end"))
    code.branch(loop)
    code.position_at_end(loop)
    part = code.phi(I64)
    part.add_incoming(first, start)
    code.cbranch(code.icmp_signed("<", part, told["parts"]), body, end)
    code.position_at_end(body)
    bounds = (read(told["bounds"], part), read(told["bounds"], code.add(part, I64(1))))
    scratch = code.add(told["scratch"], code.mul(part, told["stride"]))
    called(told["function"], ir.VoidType(), told["numbers"], *bounds, scratch)
    # OpenMP may give fewer threads than there are parts.
    part.add_incoming(code.add(part, step), code.block)
    code.branch(loop)
    code.position_at_end(end)
    code.ret_void()
    return finished(module, "worker", 1)
