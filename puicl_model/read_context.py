"""A context that the network has read once, for any number of new rows (paper, Section 3)."""

import numpy as np
import torch

from puicl_model.inference import difference
from puicl_model.model import PUICL, _in_pieces, standardize


class ReadContext:
    """Scores new rows as `PUICL.score_new_rows` does, without reading the table each time.

    Holds, of every block, the cells that new rows attend to: layers x rows x (columns + 1) x
    embedding size numbers, but of the last block the label's column alone.
    """

    @torch.inference_mode()
    def __init__(self, network: PUICL, table: np.ndarray, n_labeled: int):
        """table: [R, w] float32, labelled positives first."""
        self.network = network
        self._table = torch.from_numpy(table)[None].to(network.unlabeled_token.device)
        scaled = standardize(self._table, self._table, n_labeled, network.config)
        h = network.think(network.embed(scaled, n_labeled)).to(network.compute_dtype)
        self._n_labeled = n_labeled
        self._cells = []
        *blocks, last = network.blocks
        for block in blocks:
            h = _in_pieces(block.within_rows, h, axis=1)
            self._cells.append(h)
            h = _in_pieces(block.within_columns, h, axis=2)
        self._cells.append(_in_pieces(last._label_within_rows, h, axis=1))

    @property
    def n_bytes(self) -> int:
        """Memory that it holds."""
        return sum(cells.numel() * cells.element_size() for cells in self._cells)

    @torch.inference_mode()
    def log_odds(self, new: np.ndarray) -> np.ndarray:
        """Log-odds [m] of being positive of rows `new` [m, w] float32, each by itself."""
        x = torch.from_numpy(new)[None].to(self._table.device)
        scaled = standardize(x, self._table, self._n_labeled, self.network.config)
        rows = self.network.embed(scaled, n_labeled=0).to(self.network.compute_dtype)
        *blocks, last = self.network.blocks
        for block, cells in zip(blocks, self._cells[:-1], strict=True):
            rows = block._new_within_columns(cells, block.within_rows(rows))
        label = last._label_within_rows(rows)
        answers = last._new_within_columns(self._cells[-1], label)[:, :, 0]
        return difference(self.network.decoder(answers.to(x.dtype)))[0]
