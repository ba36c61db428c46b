"""Fused attention along one axis of a table, in bfloat16 on CPUs: no scores in memory.

Reads the projections in their original layout and writes the heads merged, so that nothing is
permuted or copied. Problems (one head of one column or row of a task) are independent. Threads
share them, and results are the same bits for any number of threads.
"""

import functools
from types import ModuleType

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from puicl_model.plain import PLAIN
from puicl_model.threads import run

# Head sizes that were measured to be faster; code is compiled for each.
SIZES = (16, 32, 64)

# Queries in a group, whose softmax statistics are stored together.
_LANES = 16

# Least number of keys for tile code: with fewer, tiles of 32 keys are mostly empty.
_WORTH_TILES = 17


def can_attend(h: Tensor, size: int) -> bool:
    """Whether `attend_merged` supports heads of `size` in the type and on the device of h."""
    if h.dtype != torch.bfloat16 or h.device.type != "cpu" or size not in SIZES:
        return False
    return not torch.compiler.is_compiling() and _supported(size)


def has_machine_code() -> bool:
    """Whether bfloat16 attention runs compiled machine code, which changes the result's bits."""
    return _supported(SIZES[0])


def has_tile_code() -> bool:
    """Whether that code uses the processor's tiles for long axes, which changes bits again."""
    return _supported_on_tiles(SIZES[0])


def attend_merged(q: Tensor | None, kv: Tensor, axis: int, bias: Tensor | None = None) -> Tensor:
    """softmax(log(2) (q + bias) k^T) v along `axis` (1 or 2), heads merged: [B, r, c, E].

    Either q [B, r, c, H, D] and kv [B, R, C, 2, H, D], or q None and kv [B, R, C, 3, H, D] with
    queries first. bias: [E], added in float32. Weights are powers of two: to get a softmax with
    base e, the caller multiplies queries and bias by log2(e).
    """
    if bias is None:
        bias = torch.zeros(kv.shape[-2] * kv.shape[-1], **PLAIN)
    return _Fused.apply(q, kv, bias.float(), axis)


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q: Tensor | None, kv: Tensor, bias: Tensor, axis: int) -> Tensor:
        kv, bias = kv.contiguous(), bias.contiguous()
        q = q if q is None else q.contiguous()
        asking = _parts(q, kv)[0]
        out = asking.new_empty(*asking.shape[:3], asking.shape[3] * asking.shape[4])
        problems = asking.shape[:4].numel() // max(1, asking.shape[axis])
        groups = -(-asking.shape[axis] // _LANES)
        stats = torch.empty(problems, groups, 2, _LANES, **PLAIN)
        _run("forward", q, kv, bias, axis, out, stats)
        ctx.save_for_backward(q, kv, bias, out, stats)
        ctx.axis = axis
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        q, kv, bias, out, stats = ctx.saved_tensors
        dq, dkv = None if q is None else torch.empty_like(q), torch.empty_like(kv)
        shares = torch.zeros(len(stats), kv.shape[-1], **PLAIN)
        _run("backward", q, kv, bias, ctx.axis, out, stats, gradient.contiguous(), dq, dkv, shares)
        # NumPy's order of summation does not depend on the number of threads.
        d_bias = torch.from_numpy(shares.view(-1, len(bias)).numpy().sum(0))
        return dq, dkv, d_bias, None


def _run(name, q, kv, bias, axis, out, stats, *gradients) -> None:
    """Run the machine code `name` on all problems; it writes out and stats, or the gradients."""
    from puicl_model.attention_parts import PARAMETERS

    asking, keys, values = _parts(q, kv)
    b, *_, heads, size = asking.shape
    other = 3 - axis
    told = {"q": asking, "k": keys, "v": values, "bias": bias, "out": out, "stats": stats}
    if gradients:
        gradient, dq, dkv, d_bias = gradients
        d_asking, d_keys, d_values = _parts(dq, dkv)
        told |= {"dout": gradient, "dq": d_asking, "dk": d_keys, "dv": d_values, "dbias": d_bias}
    told = {key: x.data_ptr() for key, x in told.items()}
    told |= {"n1": asking.shape[other], "n2": heads}
    told |= {"asking": asking.shape[axis], "length": keys.shape[axis]}
    for letter, x in (("q", asking), ("k", keys), ("o", out.unflatten(-1, (heads, size)))):
        for place, dimension in (("0", 0), ("1", other), ("2", 3), ("_row", axis)):
            told[letter + place] = x.stride(dimension) * x.element_size()

    count = b * told["n1"] * heads
    scores = count * told["asking"] * told["length"]
    if not scores:
        for empty in (dq, dkv) if gradients else (out,):
            if empty is not None:
                empty.zero_()
        return
    code = _code(size, told["length"])
    function = code.function(name, size)
    need = getattr(code, name + "_scratch")(size, told["asking"], told["length"])
    run(function, PARAMETERS, told, count, scores, need)


def _parts(q: Tensor | None, kv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each [B, ., ., H, D], from the arguments of `attend_merged`."""
    return kv[:, :, :, 0] if q is None else q, kv[:, :, :, -2], kv[:, :, :, -1]


def _code(size: int, length: int) -> ModuleType:
    """The module with the code for attention to `length` keys."""
    from puicl_model import attention_code, tile_attention

    on_tiles = length >= _WORTH_TILES and _supported_on_tiles(size)
    return tile_attention if on_tiles else attention_code


@functools.cache
def _supported_on_tiles(size: int) -> bool:
    try:
        from puicl_model import tile_attention, tile_code

        return tile_code.has_tiles() and bool(tile_attention.function("forward", size))
    except (ImportError, RuntimeError):  # no LLVM, or it cannot compile this
        return False


@functools.cache
def _supported(size: int) -> bool:
    try:
        from puicl_model import attention_code, machine_code

        return machine_code.has_pair_dot() and bool(attention_code.function("forward", size))
    except (ImportError, RuntimeError):  # no LLVM, or it cannot compile this
        return False
