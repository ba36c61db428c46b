"""The operations inside a block, for float32 weights and activations of any float type.

In bfloat16, weights are rounded when they are used; matrix products and norms accumulate in
float32. PyTorch's fused attention is slow in bfloat16 on CPUs, and on any device it wastes its
tiles on the few cells of a row. In these cases scores are written out, on CPUs with a hand-written
gradient. (`fused` and `cell_attention` take precedence where they apply.) The choice depends on
shapes, types and the microbatch's own values, never on the number of processes.

L is the length of the attended axis, l the number of queries, D the size of a head, N the product
of all leading axes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from puicl_model import gpu_passes, passes

# Up to this length scores are written out in every type; this is mostly attention within rows.
SHORT = 32

# Scores are processed in pieces of at most this many bytes, so that they stay in the cache.
PIECE_BYTES = 4 << 20

# Training stores exp(scores) of an attention up to this many bytes; larger ones are recomputed.
KEPT_BYTES = 64 << 20

# For scores within +-SAFE_SCORE, exp and its sums and quotients neither over- nor underflow.
SAFE_SCORE = 40.0


def can_pass(x: Tensor) -> bool:
    """Whether `passes` or `gpu_passes` supports x [..., E]."""
    return _passes_for(x).can_pass(x)


def _passes_for(x: Tensor):
    return gpu_passes if x.is_cuda else passes


def linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """Apply `layer` in the type of x."""
    return F.linear(x, layer.weight.to(x.dtype), layer.bias.to(x.dtype))


def multiply(x: Tensor, weight: Tensor) -> Tensor:
    """x weight^T as one matrix product; F.linear without a bias would compute many small ones."""
    return (x.flatten(0, -2) @ weight.to(x.dtype).t()).unflatten(0, x.shape[:-1])


def linear_but_bias(x: Tensor, layer: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """Apply `layer` in the type of x; return the result without its bias, and the bias [E].

    If the next operation cannot add the bias itself, return the result with the bias, and None.
    """
    if can_pass(x):
        return multiply(x, layer.weight), layer.bias
    return linear(x, layer), None


def add_and_gelu(x: Tensor, bias: Tensor | None) -> Tensor:
    """GELU(x + bias) in the type of x, or GELU(x) if bias is None."""
    if bias is None:
        return F.gelu(x)
    return _passes_for(x).gelu(x, bias) if can_pass(x) else F.gelu(x + bias.to(x.dtype))


def add_and_norm(h: Tensor, update: Tensor, bias: Tensor | None, norm: nn.Module) -> Tensor:
    """norm(h + update + bias) in the type of h, or norm(h + update) if bias is None.

    Any module over [..., E] may be the norm. LayerNorm and RMSNorm have code of their own in
    bfloat16; every other, and those that lack a parameter or eps, is computed as it is, in the type
    of its parameters.
    """
    known = (nn.LayerNorm, nn.RMSNorm)
    if (
        not isinstance(norm, known)
        or type(norm) not in known  # a subclass may do something else
        or norm.eps is None
        or norm.weight is None
        or (isinstance(norm, nn.LayerNorm) and norm.bias is None)
    ):
        total = h + update if bias is None else h + update + bias.to(h.dtype)
        dtype = next((parameter.dtype for parameter in norm.parameters()), h.dtype)
        return norm(total.to(dtype)).to(h.dtype)
    if can_pass(h) and (isinstance(norm, nn.RMSNorm) or not h.is_cuda):
        bias = norm.weight.new_zeros(norm.weight.shape) if bias is None else bias
        return _passes_for(h).add_and_norm(h, update, bias, norm)
    total = h + update if bias is None else h + update + bias.to(h.dtype)
    if total.dtype == norm.weight.dtype:
        return norm(total)
    on_cpu = total.device.type == "cpu"  # there LayerNorm mixes types, and RMSNorm is slow
    if isinstance(norm, nn.LayerNorm):
        dtype = norm.weight.dtype if on_cpu else total.dtype
        weight, shift = norm.weight.to(dtype), norm.bias.to(dtype)
        return F.layer_norm(total, norm.normalized_shape, weight, shift, norm.eps)
    if on_cpu:
        return _RMSNorm.apply(total, norm.weight, norm.eps)
    return F.rms_norm(total, norm.normalized_shape, norm.weight.to(total.dtype), norm.eps)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T) v for q [.., l, D], k and v [.., L, D]; q is already scaled."""
    written_out = k.shape[-2] <= SHORT or (q.dtype == torch.bfloat16 and q.device.type == "cpu")
    if not written_out:
        # Flatten to four dimensions: with more, PyTorch uses its slowest implementation.
        query, key, value = (part.flatten(0, -4) for part in (q, k, v))
        return F.scaled_dot_product_attention(query, key, value, scale=1.0).view(q.shape)
    if q.device.type != "cpu":  # the rest is tuned to a CPU's cache and inspects values
        return (q @ k.transpose(-1, -2)).float().softmax(-1).to(v.dtype) @ v
    flat = [part.contiguous().flatten(0, -3) for part in (q, k, v)]
    if torch.is_grad_enabled():
        return _Attention.apply(*flat).view(q.shape)
    return _attend_in_pieces(*flat).view(q.shape)


class _Attention(torch.autograd.Function):
    """softmax(q k^T) v for contiguous q [N, l, D], k and v [N, L, D].

    exp(scores) is not normalised, so that the only passes over [N, l, L] are the products, exp and,
    in the backward pass, one multiplication.
    """

    @staticmethod
    def forward(ctx, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        weights = None
        if len(q) * q.shape[1] * k.shape[1] * q.element_size() <= KEPT_BYTES:
            weights = q.new_empty(len(q), q.shape[1], k.shape[1])
        attended, sums = torch.empty_like(q), torch.empty_like(q)
        for some, w in _pieces(q, k, weights):
            _exp_scores(q[some], k[some], out=w)
            sums[some] = _sums(w, q.shape[-1])
            torch.bmm(w, v[some], out=attended[some])
        attended.div_(sums)
        ctx.save_for_backward(q, k, v, sums, attended, weights)
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        q, k, v, sums, attended, weights = ctx.saved_tensors
        size = q.shape[-1]
        # With P = weights / sums: dS = P (dO v^T - rowsum(dO * O)) = weights (g v^T - rowsum(g O))
        # where g = dO / sums. An extra column in g and in v does the subtraction.
        g = torch.div(gradient, sums, out=torch.empty_like(q))
        offset = (g * attended).view(-1, size) @ q.new_full((size, 1), -1)
        g_offset = torch.cat([g, offset.view(*q.shape[:2], 1)], dim=-1)
        v_one = torch.cat([v, v.new_ones(*v.shape[:2], 1)], dim=-1).transpose(1, 2)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        pieces = _pieces(q, k, weights)
        scores = torch.empty_like(pieces[0][1])
        for some, w in pieces:
            if weights is None:
                _exp_scores(q[some], k[some], out=w)
            torch.bmm(w.transpose(1, 2), g[some], out=dv[some])
            ds = torch.bmm(g_offset[some], v_one[some], out=scores[: len(w)]).mul_(w)
            torch.bmm(ds, k[some], out=dq[some])
            torch.bmm(ds.transpose(1, 2), q[some], out=dk[some])
        return dq, dk, dv


def _attend_in_pieces(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same as `_Attention` without a gradient, holding at most `PIECE_BYTES` of scores."""
    n, asked, size = q.shape
    together = max(1, PIECE_BYTES // (k.shape[1] * q.element_size()))
    if together >= asked:
        ranges = [(some, slice(0, asked)) for some, _ in _pieces(q, k, None)]
    else:
        starts = range(0, asked, together)
        ranges = [(slice(i, i + 1), slice(s, s + together)) for i in range(n) for s in starts]
    attended = torch.empty_like(q)
    room = q.new_empty(
        max(PIECE_BYTES // q.element_size(), k.shape[1] * (asked if together >= asked else 1))
    )
    for some, rows in ranges:
        few = q[some, rows]
        w = room[: few.shape[:2].numel() * k.shape[1]].view(*few.shape[:2], k.shape[1])
        _exp_scores(few, k[some], out=w)
        torch.div(torch.bmm(w, v[some]), _sums(w, size), out=attended[some, rows])
    return attended


def _pieces(q: Tensor, k: Tensor, kept: Tensor | None) -> list[tuple[slice, Tensor]]:
    """Slices of the first axis and memory for their scores: in `kept`, or one shared buffer."""
    n, asked, _ = q.shape
    each = max(1, min(n, PIECE_BYTES // (asked * k.shape[1] * q.element_size())))
    slices = [slice(start, min(start + each, n)) for start in range(0, n, each)]
    if kept is not None:
        return [(some, kept[some]) for some in slices]
    buffer = q.new_empty(each, asked, k.shape[1])
    return [(some, buffer[: some.stop - some.start]) for some in slices]


def _exp_scores(q: Tensor, k: Tensor, out: Tensor) -> None:
    """Write exp(q k^T) up to a factor per row, which the normalisation cancels."""
    torch.bmm(q, k.transpose(1, 2), out=out)
    # A check is cheaper than subtracting row maxima, except on a GPU, where it would synchronise.
    if q.device.type != "cpu" or not (_bounded(q, k) or _small(out)):
        out.sub_(out.amax(dim=-1, keepdim=True))
    out.exp_()


def _bounded(q: Tensor, k: Tensor) -> bool:
    """Whether the norms of queries and keys bound the scores safely; only checked for long L."""
    if k.shape[1] <= SHORT:
        return False
    longest = [torch.linalg.vector_norm(x, dim=-1, dtype=torch.float32).amax() for x in (q, k)]
    return (longest[0] * longest[1]).item() < SAFE_SCORE


def _small(scores: Tensor) -> bool:
    low, high = torch.aminmax(scores)
    return low.item() > -SAFE_SCORE and high.item() < SAFE_SCORE


def _sums(weights: Tensor, size: int) -> Tensor:
    """Sums over the last axis, repeated `size` times: [N, l, size].

    Reductions over a short last axis and broadcasts along it are slow on CPUs; products with ones
    are not.
    """
    n, asked, length = weights.shape
    if length <= SHORT:
        sums = weights.view(-1, length) @ weights.new_ones(length, size)
    else:
        sums = weights.sum(-1).view(-1, 1) @ weights.new_ones(1, size)
    return sums.view(n, asked, size)


class _RMSNorm(torch.autograd.Function):
    """RMSNorm over the last axis, in a lower precision than that of its weight."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
        inverse = (norm.square() / x.shape[-1] + eps).rsqrt().to(x.dtype)
        unit = x * inverse
        ctx.save_for_backward(unit, inverse, weight)
        return unit * weight.to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        unit, inverse, weight = ctx.saved_tensors
        low = weight.to(unit.dtype)
        product = (gradient * unit).flatten(0, -2)
        along = product @ (low / -unit.shape[-1]).unsqueeze(-1)
        dx = torch.addcmul(gradient * low, unit, along.view_as(inverse)).mul_(inverse)
        return dx, product.sum(0, dtype=torch.float32), None
