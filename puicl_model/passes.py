"""Sum and norm, GELU and their gradients in one pass each, in bfloat16 on CPUs.

The functions take a linear layer's result before its bias and add the bias themselves.
"""

import functools

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from puicl_model.plain import PLAIN
from puicl_model.threads import run

# Most numbers per row for which machine code is compiled.
_WIDEST = 1024


def can_pass(x: Tensor) -> bool:
    """Whether `gelu` and `add_and_norm` support [..., E] of x's type, device and width.

    Depends on the processor, too.
    """
    if x.dtype != torch.bfloat16 or x.device.type != "cpu":
        return False
    if x.shape[-1] % 16 or not 0 < x.shape[-1] <= _WIDEST:
        return False
    return not torch.compiler.is_compiling() and _supported()


def gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU(x + bias) for bfloat16 x [..., E] and bias [E], which is added in float32."""
    return _Gelu.apply(x, bias.float())


def add_and_norm(h: Tensor, update: Tensor, bias: Tensor, norm: nn.Module) -> Tensor:
    """norm(h + update + bias) for bfloat16 h, update [..., E]; bias and weights used in float32."""
    shift = norm.bias.float() if isinstance(norm, nn.LayerNorm) else None
    return _Norm.apply(h, update, bias.float(), norm.weight.float(), shift, norm.eps)


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, bias: Tensor) -> Tensor:
        x, bias = x.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        _run("gelu", out, x=x, bias=bias)
        ctx.save_for_backward(x, bias)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, bias = ctx.saved_tensors
        out, slope = torch.empty_like(x), gradient.contiguous()
        (d_bias,) = _run("gelu gradient", out, 1, x=x, bias=bias, slope=slope)
        return out, d_bias


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx,
        h: Tensor,
        update: Tensor,
        bias: Tensor,
        weight: Tensor,
        shift: Tensor | None,
        epsilon: float,
    ) -> Tensor:
        h, update, bias = h.contiguous(), update.contiguous(), bias.contiguous()
        ctx.kind = "rmsnorm" if shift is None else "layernorm"
        x, out = torch.empty_like(h), torch.empty_like(h)
        stats = torch.empty(*h.shape[:-1], 2, **PLAIN)
        told: dict[str, Tensor | int] = {"h": h, "update": update, "x": x, "bias": bias}
        told |= {"weight": weight, "stats": stats}
        told |= {"epsilon": int(np.float32(epsilon).view(np.int32))}
        if shift is not None:
            told["shift"] = shift
        _run(ctx.kind, out, 0, **told)
        ctx.save_for_backward(x, weight, stats)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        x, weight, stats = ctx.saved_tensors
        out, slope = torch.empty_like(x), gradient.contiguous()
        sums = _run(ctx.kind + " gradient", out, 3, x=x, weight=weight, stats=stats, slope=slope)
        d_bias, d_weight, d_shift = sums
        return out, out, d_bias, d_weight, d_shift if ctx.kind == "layernorm" else None, None


def _run(name: str, out: Tensor, n_sums: int = 0, /, **told: Tensor | int) -> Tensor:
    """Run the pass `name`, which writes `out`, and return its sums over all rows [n_sums, E]."""
    from puicl_model import pass_code

    width = out.shape[-1]
    rows = out.numel() // width
    chunks = -(-rows // pass_code.ROWS)
    sums = torch.empty(chunks, n_sums, width, **PLAIN)
    if rows:
        told |= {"out": out, "sums": sums, "rows": rows}
        numbers = {key: x.data_ptr() if isinstance(x, Tensor) else x for key, x in told.items()}
        function = pass_code.function(name, width)
        run(function, pass_code.PARAMETERS, numbers, chunks, out.numel())
    # NumPy's order of summation does not depend on the number of threads.
    return torch.from_numpy(sums.numpy().sum(0))


@functools.cache
def _supported() -> bool:
    try:
        from puicl_model import machine_code, pass_code

        return machine_code.has_pair_dot() and bool(pass_code.function("gelu", 16))
    except (ImportError, RuntimeError):  # no LLVM, or it cannot compile this
        return False
