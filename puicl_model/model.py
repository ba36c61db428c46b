"""PUICL: the dual-axis transformer over a table of cells (paper, Section 3).

Letters in shape comments: B tasks, R rows (labelled positives first), C = d + 1 columns (the
label column last), E embedding size, H heads, D = E / H, Q new rows, P labelled positives,
T thinking rows (none in the paper), G features embedded together (one in the paper).
"""

import math
from collections.abc import Iterable, Iterator
from typing import cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from puicl_config import ModelConfig
from puicl_model.blocks import Block, FeedForward
from puicl_model.plain import PLAIN, Linear

# A column whose standard deviation among the labelled positives is below this share of the one
# among all rows counts as constant among the positives, and is scaled by the latter.
DEGENERATE_SPREAD = 1e-6

# For a table of this many rows, the scalable softmax is initialised to equal the plain softmax.
TYPICAL_ROWS = 450


class PUICL(nn.Module):
    """Read labelled positives and unlabelled rows together and classify the unlabelled rows.

    There is no positional encoding and no attention mask: permuting unlabelled rows permutes the
    output. The order of columns matters only if `feature_group` embeds each column together with
    others.
    """

    def __init__(self, config: ModelConfig, generator: torch.Generator | None = None):
        """Draw weights from `generator` (default: a new one with seed 0), never a global one."""
        super().__init__()
        e = config.embedding_size
        self.config = config
        # Type of the blocks' activations: "bfloat16", or "float32" for the weights' own type.
        # Embedding, decoder and logits always keep the weights' type.
        self.precision = "float32"
        # Gradient checkpointing: store only the blocks' inputs and recompute the rest, bit for bit.
        self.recompute = False
        self.feature_encoder = Linear(len(config.feature_group), e)
        self.label_encoder = Linear(1, e)
        self.unlabeled_token = nn.Parameter(torch.empty(e, **PLAIN))
        if config.reveals_negatives:
            self.negative_token = nn.Parameter(torch.empty(e, **PLAIN))
        if config.thinking_rows:
            self.thinking_rows = nn.Parameter(torch.empty(config.thinking_rows, e, **PLAIN))
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
        revealed: boolean [B, R - n_labeled], the unlabelled rows that are shown to the network as
        negatives (training only; needs `reveals_negatives`). revealed_positives: likewise, those
        shown as positives.
        """
        x = standardize(x, x, n_labeled, self.config)
        return self._classify(self.embed(x, n_labeled, revealed, revealed_positives), n_labeled)

    def forward_masked(self, x: Tensor, labeled: Tensor) -> Tensor:
        """Logits [B, R, 2] of all rows; those of unlabelled rows equal the logits of `forward`.

        x: [B, R, d]; labeled: boolean [R]. No shape depends on how many rows are labelled, so one
        recording (CUDA graph) serves any number of labelled rows.
        """
        x = standardize_masked(x, labeled, self.config)
        positive = self.label_encoder(x.new_ones(1))
        labels = torch.where(labeled.unsqueeze(-1), positive, self.unlabeled_token.to(x.dtype))
        return self._classify(self._with_labels(x, labels.expand(len(x), -1, -1)), 0)

    def _classify(self, h: Tensor, first_row: int) -> Tensor:
        """Logits [B, R - first_row, 2] from embedded cells h [B, R, C, E]."""
        dtype = h.dtype
        h = self.think(h).to(self.compute_dtype)
        *blocks, last = self._stack()
        for block in blocks:
            if self.recompute and torch.is_grad_enabled():
                h = checkpoint(block, h, use_reentrant=False, preserve_rng_state=False)
            else:
                h = block(h)
        answers = last.answers(h, self.config.thinking_rows + first_row)
        return self.decoder(answers.to(dtype))

    def score_new_rows(self, x: Tensor, n_labeled: int, x_new: Tensor) -> Tensor:
        """Logits [B, Q, 2] of rows outside the table, each scored independently.

        x: [B, R, d], the table; x_new: [B, Q, d]. A new row attends to the table and to itself,
        and nothing attends to it, so its logits do not depend on the other new rows.
        """
        return self.look(self.read(x, n_labeled), x, n_labeled, x_new)

    def read(self, x: Tensor, n_labeled: int) -> Iterator[Tensor]:
        """Yield for each block the cells of the table x [B, R, d] that new rows attend to.

        The shape is [B, T + R, C, E], except for the last block, which yields only its label
        column, [B, T + R, 1, E]. Blocks are computed lazily, so a caller that does not store them
        needs memory for one block only.
        """
        h = self.embed(standardize(x, x, n_labeled, self.config), n_labeled)
        h = self.think(h).to(self.compute_dtype)
        *blocks, last = self._stack()
        for block in blocks:
            seen = block.seen(h)
            yield seen
            h = block.after(seen)
        yield last.seen_labels(h)

    def answer(self, labels: Tensor, n_labeled: int) -> Tensor:
        """Logits [B, R - n_labeled, 2] of the table itself, bit for bit those of `forward`.

        labels: the last tensor that `read` yields, [B, T + R, 1, E].
        """
        last = self._stack()[-1]
        answers = last.answers_of_labels(labels, self.config.thinking_rows + n_labeled)
        return self.decoder(answers.to(self.unlabeled_token.dtype))

    def look(self, read: Iterable[Tensor], x: Tensor, n_labeled: int, x_new: Tensor) -> Tensor:
        """Logits [B, Q, 2] of new rows x_new [B, Q, d]; read: what `read` yields for table x."""
        new = self.embed(standardize(x_new, x, n_labeled, self.config), n_labeled=0)
        new = new.to(self.compute_dtype)
        *blocks, last = self._stack()
        seen = iter(read)
        for block in blocks:
            new = block.look(next(seen), new)
        return self.decoder(last.look_at_labels(next(seen), new).to(x.dtype))

    @property
    def compute_dtype(self) -> torch.dtype:
        """The type of the blocks' activations."""
        if self.precision == "bfloat16":
            return torch.bfloat16
        return self.unlabeled_token.dtype

    @property
    def orders_matter(self) -> bool:
        """Whether the order of the columns changes the output."""
        return self.config.feature_group != (0,)

    def embed(
        self,
        x: Tensor,
        n_labeled: int,
        revealed: Tensor | None = None,
        revealed_positives: Tensor | None = None,
    ) -> Tensor:
        """Embed standardised features [B, R, d], one vector a cell: [B, R, C, E] (Section 3.1).

        `feature_group` holds offsets: a column is embedded together with the columns that many
        places to its right, wrapping around. The paper uses (0,), the column alone.
        """
        b, r, _ = x.shape
        positive = self.label_encoder(x.new_ones(1))  # E: the label of a labelled positive is 1
        unlabeled = self.unlabeled_token.to(positive.dtype).expand(b, r - n_labeled, -1)
        if revealed is not None:
            negative = self.negative_token.to(positive.dtype)
            unlabeled = torch.where(revealed.unsqueeze(-1), negative, unlabeled)
        if revealed_positives is not None:
            unlabeled = torch.where(revealed_positives.unsqueeze(-1), positive, unlabeled)
        labels = torch.cat([positive.expand(b, n_labeled, -1), unlabeled], dim=1)  # B R E
        return self._with_labels(x, labels)

    def _with_labels(self, x: Tensor, labels: Tensor) -> Tensor:
        """Embed features x [B, R, d] and append embedded labels [B, R, E]: [B, R, C, E]."""
        group = [x.roll(-offset, dims=-1) for offset in self.config.feature_group]
        features = self.feature_encoder(torch.stack(group, dim=-1))  # B R d E
        return torch.cat([features, labels.unsqueeze(2)], dim=2)

    def think(self, h: Tensor) -> Tensor:
        """Prepend the learnable thinking rows, the same in every column: [B, T + R, C, E]."""
        if not self.config.thinking_rows:
            return h
        rows = self.thinking_rows.to(h.dtype)[:, None].expand(len(h), -1, h.shape[2], -1)
        return torch.cat([rows, h], dim=1)

    def _stack(self) -> list[Block]:
        return [cast(Block, block) for block in self.blocks]

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw PyTorch's default initial distributions from `generator`, in a fixed order."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                module.weight.uniform_(-bound, bound, generator=generator)
                module.bias.uniform_(-bound, bound, generator=generator)
            elif isinstance(module, nn.LayerNorm | nn.RMSNorm):
                module.reset_parameters()
        for block in self._stack():
            for attention in (block.feature_attention, block.row_attention):
                nn.init.xavier_uniform_(attention.qkv.weight, generator=generator)
                attention.qkv.bias.zero_()
                attention.out.bias.zero_()
                if attention.softmax_scale is not None:
                    attention.softmax_scale.fill_(1 / math.log(TYPICAL_ROWS))
        for token in self.parameters(recurse=False):
            token.uniform_(-1, 1, generator=generator)  # the range of the label encoder's bias


def standardize(rows: Tensor, table: Tensor, n_labeled: int, config: ModelConfig) -> Tensor:
    """Scale `rows` [B, Q, d] by the labelled positives of `table` [B, R, d], and clip (3.1).

    Returns [B, Q, d]. Scales by the population standard deviation, or by that of all rows if the
    labelled positives' vanishes; a column that is constant in the whole table becomes zero. With
    `standardize_by` other than "labeled", all rows of the table set the scale.
    """
    basis = table[:, :n_labeled] if config.standardize_by == "labeled" else table
    mean = basis.mean(dim=1, keepdim=True)
    spread = basis.std(dim=1, keepdim=True, correction=0)
    # Compare the values as well: rounding can give equal numbers a nonzero spread.
    equal = basis.amax(dim=1, keepdim=True) == basis.amin(dim=1, keepdim=True)
    return _scaled(rows, table, mean, spread, equal, config.feature_clip)


def standardize_masked(table: Tensor, labeled: Tensor, config: ModelConfig) -> Tensor:
    """`standardize` of the rows of `table` [B, R, d] itself; labeled: boolean [R]."""
    if config.standardize_by != "labeled":
        labeled = torch.ones_like(labeled)
    basis = labeled.unsqueeze(-1)
    share = basis / basis.sum()
    mean = (table * share).sum(dim=1, keepdim=True)
    spread = ((table - mean).square() * share).sum(dim=1, keepdim=True).sqrt()
    greatest = table.masked_fill(~basis, -math.inf).amax(dim=1, keepdim=True)
    least = table.masked_fill(~basis, math.inf).amin(dim=1, keepdim=True)
    return _scaled(table, table, mean, spread, greatest == least, config.feature_clip)


def _scaled(
    rows: Tensor, table: Tensor, mean: Tensor, spread: Tensor, equal: Tensor, clip: float
) -> Tensor:
    """(rows - mean) / spread, clipped; `equal`: columns where mean and spread are of one value."""
    overall = table.std(dim=1, keepdim=True, correction=0)
    degenerate = equal | (spread < DEGENERATE_SPREAD * overall)
    spread = torch.where(degenerate, overall, spread)
    constant = table.amax(dim=1, keepdim=True) == table.amin(dim=1, keepdim=True)
    scaled = (rows - mean) / torch.where(constant, torch.ones_like(spread), spread)
    return torch.where(constant, torch.zeros_like(scaled), scaled).clamp(-clip, clip)
