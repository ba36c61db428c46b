"""The forward pass in bfloat16 with explicit attention: PUICL's way on CPUs with bf16 matmuls.

Weights stay float32 and are rounded where they are used; the residual stream, the matrix products
and their gradients are bfloat16 (sums inside a product are float32), embedding, decoder and logits
are float32. Fused attention is slow in bfloat16 on CPU, above all backward with heads of 16, so
scores are written out, with a hand-written gradient. Every choice made here depends on shapes and
values of the microbatch alone, never on the number of processes.

Letters as in `puicl_model.model`; L is the axis attended over, N everything before it.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

LOW = torch.bfloat16

# Scores of this many bytes pass at a time, so that they stay in the cache.
SCORES_BYTES = 8 << 20

# exp of scores within these bounds neither over- nor underflows, nor do its sums.
SAFE_SCORE = 60.0


def block(layer: nn.Module, h: Tensor) -> Tensor:
    """`Block.forward` for h [B, R, C, E] in bfloat16."""
    h = _residual_norm(h, attend_within_rows(layer.feature_attention, h, h), layer.feature_norm)
    h = _residual_norm(h, attend_within_columns(layer.row_attention, h, h), layer.row_norm)
    return _residual_norm(h, feedforward(layer.feedforward, h), layer.feedforward_norm)


def last_block(layer: nn.Module, h: Tensor, first_row: int) -> Tensor:
    """The label column [B, R - first_row, E] of the last block, and nothing nobody reads.

    The decoder reads the label cells of the unlabelled rows alone: only they query, all others are
    keys and values.
    """
    label = h[:, :, -1:]
    label = _residual_norm(
        label, attend_within_rows(layer.feature_attention, label, h), layer.feature_norm
    )
    asking = label[:, first_row:]
    asking = _residual_norm(
        asking, attend_within_columns(layer.row_attention, asking, label), layer.row_norm
    )
    asking = _residual_norm(asking, feedforward(layer.feedforward, asking), layer.feedforward_norm)
    return asking[:, :, 0]


def attend_within_rows(attention: nn.Module, asking: Tensor, h: Tensor) -> Tensor:
    """Cells [B, R, c, E] attend to the cells [B, R, C, E] of their row."""
    return _attend(attention, asking, h, order=(0, 1, 3, 2, 4))


def attend_within_columns(attention: nn.Module, asking: Tensor, h: Tensor) -> Tensor:
    """Cells [B, r, C, E] attend to the cells [B, R, C, E] of their column."""
    return _attend(attention, asking, h, order=(0, 2, 3, 1, 4))


def feedforward(layer: nn.Module, h: Tensor) -> Tensor:
    """`FeedForward.forward` in bfloat16."""
    inner = F.linear(h, layer.inner.weight.to(LOW), layer.inner.bias.to(LOW))
    return F.linear(F.gelu(inner), layer.outer.weight.to(LOW), layer.outer.bias.to(LOW))


def _attend(attention: nn.Module, asking: Tensor, h: Tensor, order: tuple[int, ...]) -> Tensor:
    """Multi-head attention; `order` brings [B, R, C, H, D] to [.., H, L, D]."""
    e, heads = h.shape[-1], attention.heads
    size = e // heads
    # The scale is folded into the queries' weights.
    scale = torch.ones(3 * e, 1)
    scale[:e] = size**-0.5
    weight = (attention.qkv.weight * scale).to(LOW)
    bias = (attention.qkv.bias * scale[:, 0]).to(LOW)
    if asking is h:
        parts = F.linear(h, weight, bias).unflatten(-1, (3, heads, size))
        q, k, v = parts.permute(3, *(i if i < 3 else i + 1 for i in order)).contiguous()
    else:
        q = F.linear(asking, weight[:e], bias[:e]).unflatten(-1, (heads, size))
        q = q.permute(order).contiguous()
        parts = F.linear(h, weight[e:], bias[e:]).unflatten(-1, (2, heads, size))
        k, v = parts.permute(3, *(i if i < 3 else i + 1 for i in order)).contiguous()
    shape = q.shape
    attended = _SoftmaxAttention.apply(q.flatten(0, 2), k.flatten(0, 2), v.flatten(0, 2))
    back = [order.index(i) for i in range(5)]
    merged = attended.view(shape).permute(back).reshape(asking.shape)
    return F.linear(merged, attention.out.weight.to(LOW), attention.out.bias.to(LOW))


class _SoftmaxAttention(torch.autograd.Function):
    """softmax(q k^T) v for q [N, l, D], k and v [N, L, D] of any float dtype, q scaled already.

    exp(scores) is kept unnormalised; sums over the short axes run as products with ones, which
    are many times faster on CPU than reductions and broadcasts over a short last axis.
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        n, asked, size = q.shape
        length = k.shape[1]
        weights = q.new_empty(n, asked, length)
        for part in _parts(weights):
            _exp_scores(q[part], k[part], out=weights[part])
        if length > 64:
            sums = weights.sum(-1).view(-1, 1) @ q.new_ones(1, size)
        else:
            sums = weights.view(-1, length) @ q.new_ones(length, size)
        sums = sums.view_as(q)
        attended = torch.bmm(weights, v).div_(sums)
        ctx.save_for_backward(q, k, v, weights, sums, attended)
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        q, k, v, weights, sums, attended = ctx.saved_tensors
        n, asked, size = q.shape
        g = torch.div(gradient, sums, out=torch.empty_like(attended))  # contiguous
        delta = ((g * attended).view(-1, size) @ q.new_full((size, 1), -1)).view(n, asked, 1)
        g_and_delta = torch.cat([g, delta], dim=-1)
        v_and_one = torch.cat([v, v.new_ones(n, v.shape[1], 1)], dim=-1).transpose(1, 2)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        parts = _parts(weights)
        buffer = torch.empty_like(weights[parts[0]])
        for part in parts:
            w = weights[part]
            scores = buffer[: len(w)]
            torch.bmm(g_and_delta[part], v_and_one[part], out=scores)
            scores.mul_(w)
            torch.bmm(scores, k[part], out=dq[part])
            torch.bmm(scores.transpose(1, 2), q[part], out=dk[part])
            torch.bmm(w.transpose(1, 2), g[part], out=dv[part])
        return dq, dk, dv


def _parts(weights: Tensor) -> list[slice]:
    """Slices of the first axis, each of at most `SCORES_BYTES`."""
    n = len(weights)
    each = max(1, SCORES_BYTES // (weights[0].numel() * weights.element_size()))
    return [slice(start, min(start + each, n)) for start in range(0, n, each)]


def _exp_scores(q: Tensor, k: Tensor, out: Tensor) -> None:
    """exp(q k^T) up to a factor for each row, which the normalisation takes out again."""
    torch.bmm(q, k.transpose(1, 2), out=out)
    low, high = torch.aminmax(out)
    if not (-SAFE_SCORE < low and high < SAFE_SCORE):
        out.sub_(out.amax(dim=-1, keepdim=True))
    out.exp_()


def _residual_norm(h: Tensor, update: Tensor, norm: nn.Module) -> Tensor:
    """norm(h + update)."""
    total = h + update
    if isinstance(norm, nn.LayerNorm):
        return F.layer_norm(total, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    return _RMSNorm.apply(total, norm.weight, norm.eps)


class _RMSNorm(torch.autograd.Function):
    """RMSNorm over the last axis of bfloat16; PyTorch has no fused one on CPU."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        e = x.shape[-1]
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        inverse = (length.square() / e + eps).rsqrt().to(x.dtype)
        unit = x * inverse
        ctx.save_for_backward(unit, inverse, weight)
        return unit * weight.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        unit, inverse, weight = ctx.saved_tensors
        low = weight.to(unit.dtype)
        product = gradient * unit
        along = product.flatten(0, -2) @ (low / -unit.shape[-1]).unsqueeze(-1)
        dx = torch.addcmul(gradient * low, unit, along.view_as(inverse)).mul_(inverse)
        return dx, product.flatten(0, -2).sum(0, dtype=torch.float32), None
