"""Attention along one axis of a table, fused, in bfloat16 on CPUs: no scores in memory.

Reads the projections as they come and writes the heads merged, so nothing is permuted or copied.
Problems (a head of a column or row of a task) are independent: threads share them out, and the
bits do not depend on how many there are.
"""

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
    return _supported()


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
        asking = kv[:, :, :, 0] if q is None else q
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
    from puicl_model import machine_code

    def queries(own, all_parts):
        return all_parts[:, :, :, 0] if own is None else own

    asking, keys = queries(q, kv), kv[:, :, :, -2]
    b, *_, heads, size = asking.shape
    other = 3 - axis
    told = dict.fromkeys(machine_code.PARAMETERS, 0)
    told |= {"q": asking, "k": keys, "v": kv[:, :, :, -1], "out": out, "stats": stats}
    if gradient is not None:
        told |= {"dout": gradient, "dq": queries(dq, dkv)}
        told |= {"dk": dkv[:, :, :, -2], "dv": dkv[:, :, :, -1]}
    told = {key: x.data_ptr() if isinstance(x, Tensor) else x for key, x in told.items()}
    told |= {"n1": asking.shape[other], "n2": heads}
    told |= {"asking": asking.shape[axis], "length": keys.shape[axis]}
    for letter, x in (("q", asking), ("k", keys), ("o", out.unflatten(-1, (heads, size)))):
        strides = [2 * x.stride(i) for i in (0, other, 3, axis)]
        told |= dict(zip((letter + "0", letter + "1", letter + "2", letter + "_row"), strides))
    numbers = np.array([told[key] for key in machine_code.PARAMETERS], np.int64)

    function = machine_code.compiled(name, size, machine_code.has_pair_dot())
    need = getattr(machine_code, name + "_scratch")(size, told["asking"], told["length"])
    count = b * told["n1"] * heads
    scores = count * told["asking"] * told["length"]
    parts = max(1, min(torch.get_num_threads(), count, scores // _WORTH_A_THREAD))
    bounds = [count * i // parts for i in range(parts + 1)]

    def work(first: int, last: int) -> None:
        scratch = torch.empty(need, dtype=torch.uint8)
        function(numbers.ctypes.data, first, last, scratch.data_ptr())

    threads = [
        threading.Thread(target=work, args=pair) for pair in zip(bounds[1:-1], bounds[2:], strict=True)
    ]
    for thread in threads:
        thread.start()
    work(bounds[0], bounds[1])
    for thread in threads:
        thread.join()


def _supported() -> bool:
    try:
        from puicl_model import machine_code
    except ImportError:
        return False
    return machine_code.has_pair_dot()
