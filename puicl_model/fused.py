"""Attention along one axis of a table, fused, in bfloat16 on CPUs: no scores in memory.

Reads the projections as they come and writes the heads merged, so nothing is permuted or copied.
Problems (a head of a column or row of a task) are independent: threads share them out, and the
bits do not depend on how many there are.
"""

import functools
import threading

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Heads that were measured to gain; each has code of its own.
SIZES = (16, 32)

# Scores a thread should have, lest starting it costs more than it saves.
_WORTH_A_THREAD = 1 << 18


def can_attend(q: Tensor) -> bool:
    """Whether `attend_merged` takes these [..., D]: by type, device, size and processor."""
    if q.dtype != torch.bfloat16 or q.device.type != "cpu" or q.shape[-1] not in SIZES:
        return False
    return not torch.compiler.is_compiling() and _supported(q.shape[-1])


def attend_merged(q: Tensor | None, kv: Tensor, axis: int) -> Tensor:
    """softmax(q k^T) v along `axis` (1 or 2), heads merged: [B, r, c, E].

    kv: [B, R, C, 2, H, D] with q [B, r, c, H, D], or [B, R, C, 3, H, D], queries first, without.
    """
    return _Fused.apply(q, kv, axis)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q: Tensor | None, kv: Tensor, axis: int) -> Tensor:
        kv = kv.contiguous()
        q = q if q is None else q.contiguous()
        asking = _parts(q, kv)[0]
        out = asking.new_empty(*asking.shape[:3], asking.shape[3] * asking.shape[4])
        problems = asking.shape[:4].numel()  # a query of a head each
        stats = torch.empty(problems, 2, dtype=torch.float32)
        _run("forward", q, kv, axis, out, stats)
        ctx.save_for_backward(q, kv, out, stats)
        ctx.axis = axis
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        q, kv, out, stats = ctx.saved_tensors
        dq, dkv = None if q is None else torch.empty_like(q), torch.empty_like(kv)
        _run("backward", q, kv, ctx.axis, out, stats, gradient.contiguous(), dq, dkv)
        return dq, dkv, None


def _run(name, q, kv, axis, out, stats, gradient=None, dq=None, dkv=None) -> None:
    """Call the machine code `name` for all problems; out, or dq and dkv, are written."""
    from puicl_model import machine_code

    asking, keys, values = _parts(q, kv)
    b, *_, heads, size = asking.shape
    other = 3 - axis
    told = {"q": asking, "k": keys, "v": values, "out": out, "stats": stats}
    if gradient is not None:
        d_asking, d_keys, d_values = _parts(dq, dkv)
        told |= {"dout": gradient, "dq": d_asking, "dk": d_keys, "dv": d_values}
    told = {key: x.data_ptr() for key, x in told.items()}
    told |= {"n1": asking.shape[other], "n2": heads}
    told |= {"asking": asking.shape[axis], "length": keys.shape[axis]}
    for letter, x in (("q", asking), ("k", keys), ("o", out.unflatten(-1, (heads, size)))):
        for place, dimension in (("0", 0), ("1", other), ("2", 3), ("_row", axis)):
            told[letter + place] = x.stride(dimension) * x.element_size()
    numbers = np.array([told.get(key, 0) for key in machine_code.PARAMETERS], np.int64)

    count = b * told["n1"] * heads
    scores = count * told["asking"] * told["length"]
    if not scores:
        for empty in (out,) if gradient is None else (dq, dkv):
            if empty is not None:
                empty.zero_()
        return
    function = machine_code.compiled(name, size)
    need = getattr(machine_code, name + "_scratch")(size, told["asking"], told["length"])
    parts = max(1, min(torch.get_num_threads(), count, scores // _WORTH_A_THREAD))
    scratch = torch.empty(parts, -(-need // 64) * 64, dtype=torch.uint8)
    bounds = [count * i // parts for i in range(parts + 1)]
    calls = [(numbers.ctypes.data, *bounds[i : i + 2], scratch[i].data_ptr()) for i in range(parts)]
    threads = [threading.Thread(target=function, args=call) for call in calls[1:]]
    for thread in threads:
        thread.start()
    function(*calls[0])
    for thread in threads:
        thread.join()


def _parts(q: Tensor | None, kv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each [B, ., ., H, D], of what `attend_merged` takes."""
    return kv[:, :, :, 0] if q is None else q, kv[:, :, :, -2], kv[:, :, :, -1]


@functools.cache
def _supported(size: int) -> bool:
    try:
        from puicl_model import machine_code

        return machine_code.has_pair_dot() and bool(machine_code.compiled("forward", size))
    except (ImportError, RuntimeError):  # no LLVM, or one that cannot
        return False
