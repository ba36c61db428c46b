"""Attention among the cells of a row on a GPU, as one kernel each way (Triton).

A row has at most some tens of cells, of which a fused kernel for long sequences would give each
row and head a tile of its own, nearly all of it empty. Here a tile holds as many whole rows as fit,
and cells of other rows are masked. It reads the projections as they come and writes the heads
merged, so that nothing is permuted or copied; the gradient computes the scores again.
"""

import functools
import importlib.util

import torch
from torch import Tensor

# Cells of a tile, hence of the longest row: tl.dot wants powers of two from 16 on.
TILE = 64

# Heads whose numbers fill a tile's other side.
SIZES = (16, 32, 64)


def can_attend(qkv: Tensor) -> bool:
    """Whether `attend_cells` takes qkv [B, R, C, 3, H, D]: by device, type and shape."""
    return (
        qkv.is_cuda
        and qkv.dtype in (torch.bfloat16, torch.float16)
        and qkv.shape[2] <= TILE
        and qkv.shape[-1] in SIZES
        and has_triton()
    )


@functools.cache
def has_triton() -> bool:
    """Whether Triton is installed, as it is beside PyTorch's builds for CUDA on Linux."""
    return importlib.util.find_spec("triton") is not None


@torch.library.custom_op("puicl::attend_cells", mutates_args=())
def attend_cells(qkv: Tensor) -> Tensor:
    """softmax(q k^T) v among the cells of each row, heads merged: [B, R, C, E].

    qkv: [B, R, C, 3, H, D] of a half type, queries first, which come scaled.
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
    """The gradient of qkv, as it, from that of `attend_cells`' result."""
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
