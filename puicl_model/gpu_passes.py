"""Sum and norm, GELU and their gradients on a GPU, as one Triton kernel each.

The counterpart of `passes`: the kernels take a linear layer's result before its bias and add the
bias themselves. The bias's gradient is summed in the kernel that reads these numbers anyway.
"""

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from puicl_model.cell_attention import has_triton

# Numbers in a block of rows, and blocks of rows per program that sums a gradient.
_TILE = 4096
_EACH = 4
_WIDEST = 1024


def can_pass(x: Tensor) -> bool:
    """Whether `gelu` and `add_and_norm` support [..., E] of x's type, device and width."""
    width = x.shape[-1]
    return (
        x.is_cuda
        and x.dtype in (torch.bfloat16, torch.float16)
        and 16 <= width <= _WIDEST
        and width & (width - 1) == 0
        and not torch.compiler.is_compiling()
        and has_triton()
    )


def gelu(x: Tensor, bias: Tensor) -> Tensor:
    """GELU(x + bias) for x [..., E] in bfloat16 or float16 and bias [E] in float32."""
    return _Gelu.apply(x, bias)


def add_and_norm(h: Tensor, update: Tensor, bias: Tensor, norm: nn.RMSNorm) -> Tensor:
    """norm(h + update + bias); h, update: [..., E], bfloat16 or float16; bias: [E], float32."""
    return _Norm.apply(h, update, bias, norm.weight, norm.eps)


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h: Tensor, update: Tensor, bias: Tensor, weight: Tensor, eps: float) -> Tensor:
        from puicl_model.gpu_pass_kernels import norm_forward

        h, update, bias = h.contiguous(), update.contiguous(), bias.contiguous()
        out = torch.empty_like(h)
        n, width, rows, blocks = _sizes(h)
        norm_forward[(blocks,)](h, update, bias, weight, out, n, eps, width, rows)
        ctx.save_for_backward(h, update, bias, weight)
        ctx.eps = eps
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        from puicl_model.gpu_pass_kernels import norm_gradient

        h, update, bias, weight = ctx.saved_tensors
        n, width, rows, blocks = _sizes(h)
        programs = -(-blocks // _EACH)
        result, shares = torch.empty_like(h), weight.new_empty(programs, 2, width)
        norm_gradient[(programs,)](
            h,
            update,
            bias,
            weight,
            gradient.contiguous(),
            result,
            shares,
            n,
            ctx.eps,
            width,
            rows,
            _EACH,
        )
        of_weight, of_bias = shares.sum(0)
        return result, result, of_bias, of_weight, None


class _Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, bias: Tensor) -> Tensor:
        from puicl_model.gpu_pass_kernels import gelu_forward

        x, bias = x.contiguous(), bias.contiguous()
        out = torch.empty_like(x)
        n, width, rows, blocks = _sizes(x)
        gelu_forward[(blocks,)](x, bias, out, n, width, rows)
        ctx.save_for_backward(x, bias)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        from puicl_model.gpu_pass_kernels import gelu_gradient

        x, bias = ctx.saved_tensors
        n, width, rows, blocks = _sizes(x)
        programs = -(-blocks // _EACH)
        result, shares = torch.empty_like(x), bias.new_empty(programs, width)
        gelu_gradient[(programs,)](
            x, bias, gradient.contiguous(), result, shares, n, width, rows, _EACH
        )
        return result, shares.sum(0)


def _sizes(x: Tensor) -> tuple[int, int, int, int]:
    """Number of rows of x, their width, rows per block, and number of blocks."""
    width = x.shape[-1]
    n, rows = x.numel() // width, _TILE // width
    return n, width, rows, -(-n // rows)
