"""Run machine code on the OpenMP threads that PyTorch's operators use.

OpenMP's threads spin for a while after each operator, waiting for the next one. Threads of our own
would compete with them for the cores, so the OpenMP threads do our work as well.
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

# Arguments of a worker: two functions of OpenMP (a thread's number, the number of threads), our
# function and its arguments, and the number of parts of the work.
_TOLD = ("place", "size", "function", "numbers", "bounds", "scratch", "stride", "parts")

_CALLED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")


@functools.cache
def team() -> Callable[[int, Any, tuple[int, ...]], None] | None:
    """A function (threads, machine code, (numbers, bounds, scratch, stride, parts)), or None.

    It calls the machine code once for each part, with the address of the parameters, the part's two
    bounds, and the address of its scratch; scratches are `stride` bytes apart. None if the process
    has no OpenMP runtime with GCC's interface, which it has on Linux.
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

    run.worker = worker  # type: ignore[attr-defined]  # keeps its machine code alive
    return run


def _runtime() -> ctypes.CDLL | None:
    """PyTorch's OpenMP runtime: a global symbol of the process or, as on ARM, a file of PyTorch."""
    own = sorted(map(str, Path(torch.__file__).parent.glob("lib/libgomp*")))
    for name in (None, *own):
        try:
            # RTLD_NOLOAD: a library that PyTorch has not loaded would have other threads.
            loaded = ctypes.CDLL(name, getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_LAZY)
            if all(hasattr(loaded, function) for function in _CALLED):
                return loaded
        except (AttributeError, OSError, TypeError):  # Windows lacks the library and these modes
            continue
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _worker():
    """Compile the code that each thread of a team runs, given the arguments in `_TOLD`."""
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
    # Loop over parts, since OpenMP may provide fewer threads than there are parts.
    part.add_incoming(code.add(part, step), code.block)
    code.branch(loop)
    code.position_at_end(end)
    code.ret_void()
    return finished(module, "worker", 1)
