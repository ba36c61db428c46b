"""The two Triton kernels of `cell_attention`.

A program handles one head of as many whole rows as fit a tile. E = heads * SIZE. qkv and its
gradient: [cells, 3, heads, SIZE]; merged: [cells, E]. A tile's first `used` cells are whole rows of
`row` cells each; nothing beyond the first `cells` cells is read or written.
"""

import triton
import triton.language as tl


@triton.jit
def _place(cells, used, heads: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr):
    """Indices of the tile's cells, which of them exist, and indices of the head's numbers."""
    place = tl.arange(0, TILE)
    cell = tl.program_id(0).to(tl.int64) * used + place
    there = (place < used) & (cell < cells)
    number = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    return cell[:, None], there[:, None], number[None, :]


@triton.jit
def _weights(q, k, row, TILE: tl.constexpr):
    """softmax(q k^T) [TILE, TILE] in float32, masked to cells of the same row."""
    place = tl.arange(0, TILE)
    same = (place[:, None] // row) == (place[None, :] // row)
    scores = tl.where(same, tl.dot(q, tl.trans(k)), float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@triton.jit
def forward_kernel(
    qkv, merged, cells, row, used, heads: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr
):
    """merged = softmax(q k^T) v."""
    E: tl.constexpr = heads * SIZE
    cell, there, number = _place(cells, used, heads, SIZE, TILE)
    at = qkv + cell * (3 * E) + number
    q = tl.load(at, mask=there, other=0.0)
    k = tl.load(at + E, mask=there, other=0.0)
    v = tl.load(at + 2 * E, mask=there, other=0.0)
    weights = _weights(q, k, row, TILE)
    attended = tl.dot(weights.to(v.dtype), v)
    tl.store(merged + cell * E + number, attended.to(v.dtype), mask=there)


@triton.jit
def gradient_kernel(
    qkv,
    gradient,
    result,
    cells,
    row,
    used,
    heads: tl.constexpr,
    SIZE: tl.constexpr,
    TILE: tl.constexpr,
):
    """Write the gradients of q, k and v from that of merged.

    With weights P and dO the gradient of merged: dV = P^T dO; dS = P (dO V^T - rowsum(P dO V^T));
    dQ = dS K; dK = dS^T Q.
    """
    E: tl.constexpr = heads * SIZE
    cell, there, number = _place(cells, used, heads, SIZE, TILE)
    at = qkv + cell * (3 * E) + number
    q = tl.load(at, mask=there, other=0.0)
    k = tl.load(at + E, mask=there, other=0.0)
    v = tl.load(at + 2 * E, mask=there, other=0.0)
    do = tl.load(gradient + cell * E + number, mask=there, other=0.0)
    weights = _weights(q, k, row, TILE)
    dv = tl.dot(tl.trans(weights.to(v.dtype)), do)
    dp = tl.dot(do, tl.trans(v))
    ds = (weights * (dp - tl.sum(weights * dp, 1)[:, None])).to(v.dtype)
    dq = tl.dot(ds, k)
    dk = tl.dot(tl.trans(ds), q)
    to = result + cell * (3 * E) + number
    tl.store(to, dq.to(v.dtype), mask=there)
    tl.store(to + E, dk.to(v.dtype), mask=there)
    tl.store(to + 2 * E, dv.to(v.dtype), mask=there)
