"""Straightforward implementations of the network, with which the trainer's step is compared.

Both use PUICL's weights and give its logits (`check_logits`).
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from puicl_model import PUICL
from puicl_model.blocks import Attention, Block
from puicl_model.model import standardize


class Literal(nn.Module):
    """One task per forward pass and plain `nn.MultiheadAttention`, as in published code."""

    def __init__(self, model: PUICL):
        super().__init__()
        config = model.config
        e = config.embedding_size
        self.model = model
        self.attentions = nn.ModuleList()
        for block in blocks_of(model):
            for ours, heads in (
                (block.feature_attention, config.feature_heads or config.heads),
                (block.row_attention, config.row_heads or config.heads),
            ):
                theirs = nn.MultiheadAttention(e, heads, batch_first=True)
                with torch.no_grad():
                    theirs.in_proj_weight.copy_(ours.qkv.weight)
                    theirs.in_proj_bias.copy_(ours.qkv.bias)
                    theirs.out_proj.weight.copy_(ours.out.weight)
                    theirs.out_proj.bias.copy_(ours.out.bias)
                self.attentions.append(theirs)

    def forward(self, x: Tensor, n_labeled: int) -> Tensor:
        """Logits [R - n_labeled, 2] of one table [R, d]."""
        model = self.model
        h = model.embed(standardize(x[None], x[None], n_labeled, model.config), n_labeled)
        h = model.think(h)[0]
        for number, block in enumerate(blocks_of(model)):
            across_features, across_rows = self.attentions[2 * number : 2 * number + 2]
            h = block.feature_norm(h + across_features(h, h, h)[0])  # R C E
            columns = h.transpose(0, 1)  # C R E
            attended = across_rows(columns, columns, columns)[0].transpose(0, 1)
            h = block.row_norm(h + attended)
            inner = F.gelu(block.feedforward.inner(h))
            h = block.feedforward_norm(h + block.feedforward.outer(inner))
        return model.decoder(h[model.config.thinking_rows + n_labeled :, -1])


class Batched(nn.Module):
    """All tasks of a microbatch in one forward pass, with fused attention, in float32."""

    def __init__(self, model: PUICL):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, n_labeled: int) -> Tensor:
        """Logits [B, R - n_labeled, 2] of tables [B, R, d]."""
        model = self.model
        h = model.think(model.embed(standardize(x, x, n_labeled, model.config), n_labeled))
        for block in blocks_of(model):
            h = block.feature_norm(h + _fused(block.feature_attention, h))  # B R C E
            attended = _fused(block.row_attention, h.transpose(1, 2)).transpose(1, 2)
            h = block.row_norm(h + attended)
            inner = F.gelu(block.feedforward.inner(h))
            h = block.feedforward_norm(h + block.feedforward.outer(inner))
        return model.decoder(h[:, model.config.thinking_rows + n_labeled :, -1])


def blocks_of(model: PUICL) -> list[Block]:
    """The network's blocks, typed: a `ModuleList` does not know its members' type."""
    return [cast(Block, block) for block in model.blocks]


def check_logits(model: PUICL) -> None:
    """Raise `SystemExit` if the plain networks' logits differ, as for recipes that they lack."""
    x = torch.randn(1, 30, 5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours = model(x, 10)
        for theirs in (Batched(model)(x, 10), Literal(model)(x[0], 10)[None]):
            apart = (ours - theirs).abs().max().item()
            if not apart < 1e-3:
                raise SystemExit(f"the plain network does not match: its logits differ by {apart}")


def _fused(attention: Attention, x: Tensor) -> Tensor:
    """Self-attention over the second-to-last axis of x [..., L, E]."""
    *_, length, e = x.shape
    qkv = attention.qkv(x).view(-1, length, 3, attention.heads, e // attention.heads)
    attended = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4).unbind(0))
    return attention.out(attended.transpose(1, 2).reshape(x.shape))
