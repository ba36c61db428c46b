"""The dual-axis transformer's block: attention within rows, then columns, then feed-forward.

Letters in shape comments as in `puicl_model.model`.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from puicl_config import ModelConfig
from puicl_model import cell_attention
from puicl_model.fused import attend_merged, can_attend
from puicl_model.kernels import (
    add_and_gelu,
    add_and_norm,
    attend,
    linear,
    linear_but_bias,
    multiply,
)
from puicl_model.plain import PLAIN, Linear

# Cells per piece when no gradient is needed.
CELLS_TOGETHER = 16384

# Attention scores of new rows held in memory at once.
SCORES_TOGETHER = 1 << 24


class Block(nn.Module):
    """Attention within each row, attention within each column, feed-forward; post-norm (3.2)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        e = config.embedding_size
        norm = nn.LayerNorm if config.norm == "layernorm" else nn.RMSNorm
        self.feature_attention = Attention(e, config.feature_heads or config.heads, axis=2)
        self.feature_norm = norm(e, eps=1e-5, **PLAIN)
        row_heads = config.row_heads or config.heads
        self.row_attention = Attention(e, row_heads, axis=1, scalable=config.scalable_softmax)
        self.row_norm = norm(e, eps=1e-5, **PLAIN)
        self.feedforward = FeedForward(e, config.feedforward_size, n_out=e)
        self.feedforward_norm = norm(e, eps=1e-5, **PLAIN)

    def forward(self, h: Tensor) -> Tensor:
        """Map h [B, R, C, E] to the same shape."""
        return self.after(self.seen(h))

    def answers(self, h: Tensor, first_row: int) -> Tensor:
        """Label cells [B, R - first_row, E] for the decoder, if this is the last block.

        Unused outputs are not computed: after the attention within rows only the label column is
        kept, and in the attention within columns only the rows to classify serve as queries.
        """
        return self.answers_of_labels(self.seen_labels(h), first_row)

    def answers_of_labels(self, seen: Tensor, first_row: int) -> Tensor:
        """The same as `answers`, from the result of `seen_labels` [B, R, 1, E]."""
        return self.within_columns(seen, seen[:, first_row:].contiguous())[:, :, 0]

    def seen(self, h: Tensor) -> Tensor:
        """The table [B, R, C, E] after attention within rows: the cells that new rows attend to."""
        return in_pieces(self.within_rows, h, axis=1)

    def seen_labels(self, h: Tensor) -> Tensor:
        """The label cells [B, R, 1, E] of `seen`, all that the last block needs."""
        return in_pieces(self._label_within_rows, h, axis=1)

    def after(self, seen: Tensor) -> Tensor:
        """The block's output for the table, [B, R, C, E], from the result of `seen`."""
        return in_pieces(self.within_columns, seen, axis=2)

    def look(self, seen: Tensor, new: Tensor) -> Tensor:
        """The block's output for new rows [B, Q, C, E], each attending to the table and itself."""
        return self._new_within_columns(seen, self.within_rows(new))

    def look_at_labels(self, seen: Tensor, new: Tensor) -> Tensor:
        """New rows' label cells [B, Q, E], if this is the last block; seen: from `seen_labels`."""
        return self._new_within_columns(seen, self._label_within_rows(new))[:, :, 0]

    def within_rows(self, h: Tensor, asking: Tensor | None = None) -> Tensor:
        """First sublayer: cells `asking` [B, R, c, E] (default: all of h) attend to their row."""
        asking = h if asking is None else asking
        update, bias = self.feature_attention(asking, h)
        return add_and_norm(asking, update, bias, self.feature_norm)

    def within_columns(self, h: Tensor, asking: Tensor | None = None) -> Tensor:
        """Other two sublayers: `asking` [B, r, C, E] (default: all of h) attend to their column."""
        if h.is_cuda and asking is None:
            # Transpose the cells once instead of the queries, keys and values separately.
            columns = h.transpose(1, 2).contiguous()
            update, bias = self.row_attention(columns, columns, axis=2)
            return self._from_rows(columns, update, bias).transpose(1, 2).contiguous()
        asking = h if asking is None else asking
        return self._from_rows(asking, *self.row_attention(asking, h))

    def _from_rows(self, asking: Tensor, update: Tensor, bias: Tensor | None) -> Tensor:
        """The rest of the block for cells `asking`, given their attention `update` and its bias."""
        asking = add_and_norm(asking, update, bias, self.row_norm)
        return add_and_norm(asking, *self.feedforward.but_bias(asking), self.feedforward_norm)

    def _label_within_rows(self, h: Tensor) -> Tensor:
        return self.within_rows(h, h[:, :, -1:].contiguous())

    def _new_within_columns(self, h: Tensor, new: Tensor) -> Tensor:
        return self._from_rows(new, *self.row_attention.one_by_one(new, h))


class Attention(nn.Module):
    """Multi-head attention along one axis of [B, R, C, E]: 1, within columns, or 2, within rows.

    scalable: also multiply scores by s * log(L), with a learnable s per head and L the number of
    cells attended to, so that attention does not flatten as tables grow (scalable softmax).
    """

    def __init__(self, e: int, heads: int, axis: int, scalable: bool = False):
        super().__init__()
        self.heads = heads
        self.axis = axis
        self.qkv = Linear(e, 3 * e)
        self.out = Linear(e, e)
        self.softmax_scale = nn.Parameter(torch.empty(heads, **PLAIN)) if scalable else None

    def forward(
        self, asking: Tensor, h: Tensor, axis: int | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Attention of the cells `asking` to the cells of h along the axis, shaped like `asking`.

        Also returns the output bias [E] if it has not been added yet, else None. `axis`: the axis
        to attend along if it is not the module's own, as for transposed inputs.
        """
        axis = axis or self.axis
        if can_attend(h, h.shape[-1] // self.heads):
            return self._fused(asking, h)
        q, kv = self._project(asking, h, h.shape[axis])
        if q is None and axis == 2 and cell_attention.can_attend(kv):
            return linear_but_bias(cell_attention.attend_cells(kv), self.out)
        return self._merge(attend(*self._split(q, kv, axis)), axis)

    def _fused(self, asking: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """The same as `forward`, without separate passes to add the projections' biases.

        The bias of the keys adds a constant to all scores of a query, which the softmax cancels.
        The bias of the values passes through, since weights sum to one, and joins the output bias.
        """
        e = h.shape[-1]
        scale = self._scale(h.shape[self.axis]) * math.log2(math.e)
        weight = torch.cat([self.qkv.weight[:e] * scale.unsqueeze(-1), self.qkv.weight[e:]])
        weight = weight.to(h.dtype)
        q, kv = self._heads(asking, h, weight)
        attended = attend_merged(q, kv, self.axis, self.qkv.bias[:e] * scale)
        bias = torch.addmv(self.out.bias, self.out.weight, self.qkv.bias[2 * e :])
        return multiply(attended, self.out.weight), bias

    def one_by_one(self, asking: Tensor, h: Tensor) -> tuple[Tensor, Tensor | None]:
        """`forward`, but each cell of `asking` also attends to itself, and to no other of them."""
        # Multiplications per cell of h: 2 E^2 for its key and value plus 2 E per query; or, without
        # keys and values, 2 E per query and head.
        if asking.shape[self.axis] * (self.heads - 1) <= h.shape[-1]:
            return self._one_by_one_without_keys(asking, h)
        length = h.shape[self.axis] + 1
        q, k, v = self._split(*self._project(asking, h, length), self.axis)
        _, k_own, v_own = self._split(*self._project(asking, asking, length), self.axis)
        return self._merge(_attend_to_all_and_itself(q, k, v, k_own, v_own), self.axis)

    def _one_by_one_without_keys(self, asking: Tensor, h: Tensor) -> tuple[Tensor, Tensor | None]:
        """The same as `one_by_one`, without computing keys and values of the cells h.

        q (W h)^T equals (q W) h^T, and the values' weights can be applied to weighted sums of
        cells. The bias of the keys adds a constant to all scores of a query, which the softmax
        cancels; that of the values passes through, since weights sum to one.
        """
        e, shape = h.shape[-1], (self.heads, h.shape[-1] // self.heads)
        scale = self._scale(h.shape[self.axis] + 1)
        weight, bias = self.qkv.weight, self.qkv.bias
        q = F.linear(
            asking, (weight[:e] * scale.unsqueeze(-1)).to(h.dtype), (bias[:e] * scale).to(h.dtype)
        )
        of_keys, of_values = weight[e:].to(h.dtype).unflatten(0, (2, *shape))
        along = 2 if self.axis == 1 else 1  # the other axis: B, it, heads and queries, E
        q = torch.einsum("brchd,hde->brche", q.unflatten(-1, shape), of_keys)
        q = q.movedim(along, 1).transpose(2, 3).flatten(2, 3)
        cells, own = h.movedim(along, 1), asking.movedim(along, 1).repeat(1, 1, self.heads, 1)
        taken = _attend_to_all_and_itself(q, cells, cells, own, own)
        taken = taken.unflatten(2, (self.heads, -1))  # B . H Q E
        attended = torch.einsum("bnhqe,hde->bnhqd", taken, of_values)
        return self._merge(attended + bias[2 * e :].to(h.dtype).view(shape)[:, None], self.axis)

    def _project(self, asking: Tensor, h: Tensor, length: int) -> tuple[Tensor | None, Tensor]:
        """Scaled queries [B, r, c, H, D], and keys and values [B, R, C, 2, H, D].

        If `asking` is h itself, returns None and all three together, queries first:
        [B, R, C, 3, H, D]. `length`: number of cells that each query attends to.
        """
        e = h.shape[-1]
        # Folding the scores' scale into the queries' weights saves a pass over the queries.
        scale = F.pad(self._scale(length), (0, 2 * e), value=1.0)
        weight = (self.qkv.weight * scale.unsqueeze(-1)).to(h.dtype)
        return self._heads(asking, h, weight, (self.qkv.bias * scale).to(h.dtype))

    def _scale(self, length: int) -> Tensor:
        """Factors [E] on the numbers of a query that attends to `length` cells."""
        size = self.qkv.in_features // self.heads
        scale = self.qkv.weight.new_full((self.heads,), size**-0.5)
        if self.softmax_scale is not None:
            scale = scale * self.softmax_scale * math.log(length)
        return scale.repeat_interleave(size)

    def _heads(
        self, asking: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor]:
        """Queries, keys and values from `weight` [3 E, E], in the form that `_project` returns."""
        e = h.shape[-1]
        shape = (self.heads, e // self.heads)

        def project(x: Tensor, some: slice) -> Tensor:
            if bias is None:
                return multiply(x, weight[some])
            return F.linear(x, weight[some], bias[some])

        if asking is h:
            return None, project(h, slice(None)).unflatten(-1, (3, *shape))
        q = project(asking, slice(e)).unflatten(-1, shape)
        return q, project(h, slice(e, None)).unflatten(-1, (2, *shape))

    def _split(self, q: Tensor | None, kv: Tensor, axis: int) -> list[Tensor]:
        """Queries, keys and values [B, ., H, ., D], with the attended axis next to last."""
        parts = kv.unbind(3) if q is None else (q, *kv.unbind(3))
        order = (0, 2, 3, 1, 4) if axis == 1 else (0, 1, 3, 2, 4)
        return [part.permute(order) for part in parts]  # from B R C H D

    def _merge(self, attended: Tensor, axis: int) -> tuple[Tensor, Tensor | None]:
        order = (0, 3, 1, 2, 4) if axis == 1 else (0, 1, 3, 2, 4)
        return linear_but_bias(attended.permute(order).flatten(-2), self.out)


class FeedForward(nn.Module):
    """Linear, GELU, Linear: a block's third sublayer, and the decoder."""

    def __init__(self, e: int, hidden: int, n_out: int):
        super().__init__()
        self.inner = Linear(e, hidden)
        self.outer = Linear(hidden, n_out)

    def forward(self, x: Tensor) -> Tensor:
        """Map x [..., E] to [..., n_out]."""
        return linear(self._hidden(x), self.outer)

    def but_bias(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The same as `forward`, and the last bias if it has not been added yet, else None."""
        return linear_but_bias(self._hidden(x), self.outer)

    def _hidden(self, x: Tensor) -> Tensor:
        return add_and_gelu(*linear_but_bias(x, self.inner))


def _attend_to_all_and_itself(
    q: Tensor, k: Tensor, v: Tensor, k_own: Tensor, v_own: Tensor
) -> Tensor:
    """Attention of queries q [.., Q, D] to k, v [.., L, D] and each to its own key and value.

    k_own, v_own: [.., Q, D].
    """
    own = (q * k_own).sum(-1, keepdim=True)
    attended = torch.empty_like(q)
    together = max(1, SCORES_TOGETHER // k.shape[:-1].numel())
    for start in range(0, q.shape[-2], together):
        rows = slice(start, start + together)
        scores = torch.cat([q[..., rows, :] @ k.transpose(-1, -2), own[..., rows, :]], dim=-1)
        weights = scores.softmax(-1)
        taken = weights[..., :-1] @ v + weights[..., -1:] * v_own[..., rows, :]
        attended[..., rows, :] = taken
    return attended


def in_pieces(function: Callable[[Tensor], Tensor], h: Tensor, axis: int) -> Tensor:
    """function(h) for h [B, R, C, E]; `function` must treat positions along `axis` independently.

    Without a gradient it is applied to about `CELLS_TOGETHER` cells at a time, which bounds memory
    and makes good use of the cache.
    """
    cells_each = h.shape[:3].numel() // h.shape[axis]
    together = max(1, CELLS_TOGETHER // max(1, cells_each))
    if torch.is_grad_enabled() or together >= h.shape[axis]:
        return function(h)
    # Contiguous: PyTorch multiplies strided pieces by slower routines.
    pieces = (piece.contiguous() for piece in h.split(together, dim=axis))
    return torch.cat([function(piece) for piece in pieces], dim=axis)
