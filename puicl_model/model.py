"""PUICL: the dual-axis transformer over a table of cells (paper, Section 3).

Letters in shape comments: B tasks, R rows (labelled positives first), C = d + 1 columns (the
label column last), E embedding size, H heads, D = E / H, Q new rows, P labelled positives,
T thinking rows (none in the paper), G features embedded together (one in the paper).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from puicl_config import ModelConfig

# A column whose spread among the labelled positives is below this share of its spread among all
# rows counts as constant there, and is scaled by the latter.
DEGENERATE_SPREAD = 1e-6

# Rows of a typical table: there the scalable softmax begins as the plain one.
TYPICAL_ROWS = 450


class PUICL(nn.Module):
    """Reads labelled positives and unlabelled rows together and classifies the latter.

    No positional encoding and no attention mask: permuting unlabelled rows or columns permutes
    the output or leaves it as it is.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None):
        """Weights are drawn from `generator` (default: a new one with seed 0), never globally."""
        super().__init__()
        e = config.embedding_size
        self.config = config
        self.feature_encoder = skip_init(nn.Linear, len(config.feature_group), e)
        self.label_encoder = skip_init(nn.Linear, 1, e)
        self.unlabeled_token = nn.Parameter(torch.empty(e))
        if config.reveals_negatives:
            self.negative_token = nn.Parameter(torch.empty(e))
        if config.thinking_rows:
            self.thinking_rows = nn.Parameter(torch.empty(config.thinking_rows, e))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.decoder = FeedForward(e, config.feedforward_size, n_out=2)
        self.reset_parameters(generator or torch.Generator().manual_seed(0))

    def forward(
        self,
        x: Tensor,
        n_labeled: int,
        revealed: Tensor | None = None,
        revealed_positives: Tensor | None = None,
    ) -> Tensor:
        """Logits [B, R - n_labeled, 2] of (negative, positive) for the unlabelled rows.

        x: [B, R, d] raw features of any scale, the first `n_labeled` rows labelled positives.
        revealed: boolean [B, R - n_labeled], negatives shown as such (training only; needs
        `reveals_negatives`). revealed_positives: likewise, positives shown as such.
        """
        x = standardize(x, x, n_labeled, self.config)
        h = self.embed(x, n_labeled, revealed, revealed_positives)
        h = self.think(h)
        for block in self.blocks:
            h = block(h)
        return self.decoder(h[:, self.config.thinking_rows + n_labeled :, -1])

    def score_new_rows(self, x: Tensor, n_labeled: int, x_new: Tensor) -> Tensor:
        """Logits [B, Q, 2] of rows that were not in the table, each on its own.

        x: [B, R, d] the table; x_new: [B, Q, d]. A new row attends to the table and to itself,
        and nothing attends to it: its logits depend on no other new row.
        """
        h = self.think(self.embed(standardize(x, x, n_labeled, self.config), n_labeled))
        new = self.embed(standardize(x_new, x, n_labeled, self.config), n_labeled=0)
        for block in self.blocks:
            h, new = block.with_new_rows(h, new)
        return self.decoder(new[:, :, -1])

    def embed(
        self,
        x: Tensor,
        n_labeled: int,
        revealed: Tensor | None = None,
        revealed_positives: Tensor | None = None,
    ) -> Tensor:
        """One vector a cell, [B, R, C, E], from standardised features [B, R, d] (Section 3.1).

        With a `feature_group` of offsets, a column is embedded together with the columns that
        many places to its right, circularly; the paper's is (0,), the column alone.
        """
        b, r, _ = x.shape
        group = [x.roll(-offset, dims=-1) for offset in self.config.feature_group]
        features = self.feature_encoder(torch.stack(group, dim=-1))  # B R d E
        positive = self.label_encoder(x.new_ones(1))  # E: the label of a labelled positive is 1
        unlabeled = self.unlabeled_token.to(positive.dtype).expand(b, r - n_labeled, -1)
        if revealed is not None:
            negative = self.negative_token.to(positive.dtype)
            unlabeled = torch.where(revealed.unsqueeze(-1), negative, unlabeled)
        if revealed_positives is not None:
            unlabeled = torch.where(revealed_positives.unsqueeze(-1), positive, unlabeled)
        labels = torch.cat([positive.expand(b, n_labeled, -1), unlabeled], dim=1)  # B R E
        return torch.cat([features, labels.unsqueeze(2)], dim=2)

    def think(self, h: Tensor) -> Tensor:
        """Prepend the learnable thinking rows, the same in every column: [B, T + R, C, E]."""
        if not self.config.thinking_rows:
            return h
        rows = self.thinking_rows.to(h.dtype)[:, None].expand(len(h), -1, h.shape[2], -1)
        return torch.cat([rows, h], dim=1)

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator) -> None:
        """PyTorch's usual initial distributions, drawn from one local generator in order."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                module.weight.uniform_(-bound, bound, generator=generator)
                module.bias.uniform_(-bound, bound, generator=generator)
            elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
                module.reset_parameters()
        for block in self.blocks:
            for attention in (block.feature_attention, block.row_attention):
                nn.init.xavier_uniform_(attention.qkv.weight, generator=generator)
                attention.qkv.bias.zero_()
                attention.out.bias.zero_()
                if attention.softmax_scale is not None:
                    attention.softmax_scale.fill_(1 / math.log(TYPICAL_ROWS))
        for token in ("unlabeled_token", "negative_token", "thinking_rows"):
            if hasattr(self, token):  # as spread as the label encoder's bias
                getattr(self, token).uniform_(-1, 1, generator=generator)


class Block(nn.Module):
    """Attention within each row, attention within each column, feed-forward; post-norm (3.2)."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        e = config.embedding_size
        norm = {"layernorm": nn.LayerNorm, "rmsnorm": nn.RMSNorm}[config.norm]
        self.feature_attention = Attention(e, config.feature_heads or config.heads)
        self.feature_norm = norm(e, eps=1e-5)
        self.row_attention = Attention(e, config.row_heads or config.heads, config.scalable_softmax)
        self.row_norm = norm(e, eps=1e-5)
        self.feedforward = FeedForward(e, config.feedforward_size, n_out=e)
        self.feedforward_norm = norm(e, eps=1e-5)

    def forward(self, h: Tensor) -> Tensor:
        """[B, R, C, E] to the same shape."""
        h = self.within_rows(h)
        across = h.transpose(1, 2)  # B C R E
        h = self.row_norm(h + self.row_attention(across).transpose(1, 2))
        return self.feedforward_norm(h + self.feedforward(h))

    def with_new_rows(self, h: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
        """The same for a table [B, R, C, E] and new rows [B, Q, C, E] that only look at it."""
        new = self.within_rows(new)
        h = self.within_rows(h)
        attended = self.row_attention.one_by_one(new.transpose(1, 2), h.transpose(1, 2))
        new = self.row_norm(new + attended.transpose(1, 2))
        new = self.feedforward_norm(new + self.feedforward(new))
        h = self.row_norm(h + self.row_attention(h.transpose(1, 2)).transpose(1, 2))
        return self.feedforward_norm(h + self.feedforward(h)), new

    def within_rows(self, h: Tensor) -> Tensor:
        """The first sublayer: each row's cells attend to each other."""
        return self.feature_norm(h + self.feature_attention(h))


class Attention(nn.Module):
    """Multi-head self-attention over the second to last axis; the axes before it are batch.

    scalable: scores are also multiplied by s * log(L), with a learnable s a head and L the number
    of cells attended to, so that attention does not flatten as tables grow (scalable softmax).
    """

    def __init__(self, e: int, heads: int, scalable: bool = False):
        super().__init__()
        self.heads = heads
        self.qkv = skip_init(nn.Linear, e, 3 * e)
        self.out = skip_init(nn.Linear, e, e)
        self.softmax_scale = nn.Parameter(torch.empty(heads)) if scalable else None

    def forward(self, x: Tensor) -> Tensor:
        """[..., L, E] to [..., L, E]."""
        q, k, v = self._heads(x)  # N H L D
        attended = F.scaled_dot_product_attention(self.sharpen(q, k.shape[-2]), k, v)
        return self._merge(attended, x.shape)

    def one_by_one(self, queries: Tensor, context: Tensor) -> Tensor:
        """Each of [..., Q, E] attends to the whole context [..., L, E] and to itself alone."""
        q, k_self, v_self = self._heads(queries)  # N H Q D
        _, k, v = self._heads(context)  # N H L D
        q = self.sharpen(q, k.shape[-2] + 1)
        scale = q.shape[-1] ** -0.5
        own = (q * k_self).sum(-1, keepdim=True)  # N H Q 1
        weights = torch.cat([q @ k.transpose(-1, -2), own], dim=-1).mul(scale).softmax(-1)
        attended = weights[..., :-1] @ v + weights[..., -1:] * v_self
        return self._merge(attended, queries.shape)

    def sharpen(self, q: Tensor, length: int) -> Tensor:
        """Queries [N, H, L, D] for a softmax over `length` cells; as they are unless scalable."""
        if self.softmax_scale is None:
            return q
        return q * (self.softmax_scale * math.log(length)).to(q.dtype).view(-1, 1, 1)

    def _heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        *_, length, e = x.shape
        qkv = self.qkv(x).view(-1, length, 3, self.heads, e // self.heads)
        return qkv.permute(2, 0, 3, 1, 4).unbind(0)

    def _merge(self, attended: Tensor, shape: torch.Size) -> Tensor:
        return self.out(attended.transpose(1, 2).reshape(shape))


class FeedForward(nn.Module):
    """Linear, GELU, Linear: a block's third sublayer, and the decoder."""

    def __init__(self, e: int, hidden: int, n_out: int):
        super().__init__()
        self.inner = skip_init(nn.Linear, e, hidden)
        self.outer = skip_init(nn.Linear, hidden, n_out)

    def forward(self, x: Tensor) -> Tensor:
        """[..., E] to [..., n_out]."""
        return self.outer(F.gelu(self.inner(x)))


def standardize(rows: Tensor, table: Tensor, n_labeled: int, config: ModelConfig) -> Tensor:
    """Scale `rows` [B, Q, d] by the labelled positives of `table` [B, R, d], and clip (3.1).

    Population standard deviation. Where it vanishes among the labelled positives, all rows' is
    taken; a column that is constant in the whole table becomes zero.
    """
    basis = table[:, :n_labeled] if config.standardize_by == "labeled" else table
    mean = basis.mean(dim=1, keepdim=True)
    spread = basis.std(dim=1, keepdim=True, correction=0)
    overall = table.std(dim=1, keepdim=True, correction=0)
    # Compared as values, too: rounding can give equal numbers a spread.
    degenerate = basis.amax(dim=1, keepdim=True) == basis.amin(dim=1, keepdim=True)
    degenerate |= spread < DEGENERATE_SPREAD * overall
    spread = torch.where(degenerate, overall, spread)
    constant = table.amax(dim=1, keepdim=True) == table.amin(dim=1, keepdim=True)
    scaled = (rows - mean) / torch.where(constant, torch.ones_like(spread), spread)
    return torch.where(constant, torch.zeros_like(scaled), scaled).clamp(
        -config.feature_clip, config.feature_clip
    )
