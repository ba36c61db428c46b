"""Attention among the cells of a row on a GPU: one Triton kernel each for forward and gradient.

A row has at most a few dozen cells. A fused kernel for long sequences would use a whole tile for
each row and head, nearly all of it empty. Here a tile holds as many whole rows as fit, and cells of
other rows are masked. The kernels read the projections in their original layout and write the heads
merged, so that nothing is permuted or copied; the gradient recomputes the scores.
"""

import functools
import importlib.util

import torch
from torch import Tensor

# Cells of a tile, hence of the longest row; tl.dot requires a power of two of at least 16.
TILE = 64

# Head sizes that fill a tile's other side.
SIZES = (16, 32, 64)


def can_attend(qkv: Tensor) -> bool:
    """Whether `attend_cells` supports qkv [B, R, C, 3, H, D]: its device, type and shape."""
    return (
        qkv.is_cuda
        and qkv.dtype in (torch.bfloat16, torch.float16)
        and qkv.shape[2] <= TILE
        and qkv.shape[-1] in SIZES
        and has_triton()
    )


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed; PyTorch's CUDA builds for Linux come with it."""
    return importlib.util.find_spec("triton") is not None


@torch.library.custom_op("puicl::attend_cells", mutates_args=())
def attend_cells(qkv: Tensor) -> Tensor:
    """softmax(q k^T) v among the cells of each row, heads merged: [B, R, C, E].

    qkv: [B, R, C, 3, H, D], bfloat16 or float16, queries first and already scaled.
    """
    from puicl_model.cell_attention_kernels import forward_kernel

    qkv = qkv.contiguous()
    b, r, c, _, heads, size = qkv.shape
    merged = qkv.new_empty(b, r, c, heads * size)
    rows = TILE // c
    grid = (-(-(b * r) // rows), heads)
    forward_kernel[grid](qkv, merged, b * r * c, c, rows * c, heads, size, TILE)
    return merged


@attend_cells.register_fake
def _(qkv: Tensor) -> Tensor:
    return qkv.new_empty(*qkv.shape[:3], qkv.shape[-2] * qkv.shape[-1])


@torch.library.custom_op("puicl::attend_cells_gradient", mutates_args=())
def attend_cells_gradient(qkv: Tensor, gradient: Tensor) -> Tensor:
    """Gradient of qkv, in its shape, from the gradient [B, R, C, E] of `attend_cells`' result."""
    from puicl_model.cell_attention_kernels import gradient_kernel

    qkv, gradient = qkv.contiguous(), gradient.contiguous()
    b, r, c, _, heads, size = qkv.shape
    result = torch.empty_like(qkv)
    rows = TILE // c
    grid = (-(-(b * r) // rows), heads)
    gradient_kernel[grid](qkv, gradient, result, b * r * c, c, rows * c, heads, size, TILE)
    return result


@attend_cells_gradient.register_fake
def _(qkv: Tensor, gradient: Tensor) -> Tensor:
    return torch.empty_like(qkv, memory_format=torch.contiguous_format)


def _keep(ctx, inputs, output) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx, gradient: Tensor) -> Tensor:
    (qkv,) = ctx.saved_tensors
    return attend_cells_gradient(qkv, gradient)


attend_cells.register_autograd(_backward, setup_context=_keep)
