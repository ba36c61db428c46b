"""Contexts that the network reads once for any number of new rows (paper, Section 3)."""

import weakref
from collections import OrderedDict
from collections.abc import Callable

import numpy as np
import torch

from puicl_model.inference import difference
from puicl_model.model import PUICL
from puicl_model.own_lock import OwnLock
from puicl_model.process_settings import own_precision

# Most bytes of contexts that a process keeps by default, for all classifiers together. With the
# default weights this is one of the largest contexts (1,300 rows, 100 columns), 8 of 1,300 rows and
# 20 columns, or 110 of 200 rows and 8 columns.
KEPT_BYTES = 1_024_000_000


class ReadContext:
    """Score new rows as `PUICL.score_new_rows` does, without reading the table each time.

    Holds the cells of every block that new rows attend to: layers x rows x (columns + 1) x
    embedding size numbers, except that only the label column of the last block is needed.
    """

    @torch.inference_mode()
    def __init__(self, network: PUICL, table: np.ndarray, n_labeled: int):
        """table: [R, w] float32, labelled positives first."""
        self.network = network
        # joblib passes read-only arrays to workers and from files; PyTorch warns about these.
        table = np.require(table, requirements="W")
        self._table = torch.from_numpy(table)[None].to(network.unlabeled_token.device)
        self._n_labeled = n_labeled
        with own_precision(self._table.device):
            self._cells = list(network.read(self._table, n_labeled))

    @property
    def n_bytes(self) -> int:
        """Memory in bytes that the cells take."""
        return sum(cells.numel() * cells.element_size() for cells in self._cells)

    @torch.inference_mode()
    def log_odds_of_table(self) -> np.ndarray:
        """Log-odds [R - n_labeled] of the table's unlabelled rows."""
        with own_precision(self._table.device):
            return difference(self.network.answer(self._cells[-1], self._n_labeled))[0]

    @torch.inference_mode()
    def log_odds(self, new: np.ndarray) -> np.ndarray:
        """Log-odds [m] of being positive for rows `new` [m, w] float32, scored independently."""
        x = torch.from_numpy(new)[None].to(self._table.device)
        with own_precision(x.device):
            logits = self.network.look(self._cells, self._table, self._n_labeled, x)
        return difference(logits)[0]


def held_cells(network: PUICL, n_cells: int) -> int:
    """The cells of a pass that take as much memory as what is kept of a context of `n_cells`.

    A context keeps each block's cells; a pass holds some four copies of one block's.
    """
    return n_cells * max(1, len(network.blocks) // 4)


class Kept:
    """A cache of at most `most` bytes of recently used contexts, each for as long as its owner.

    The owners of a group are used cyclically. If not all fit, evicting the least recently used
    context would evict each one just before it is needed. So a context never evicts others of its
    own group: the first ones stay.
    """

    def __init__(self, most: int):
        self.most, self.n_bytes = most, 0
        self._contexts: OrderedDict[int, tuple[int, ReadContext]] = OrderedDict()
        self._owners: set[int] = set()
        self._lock = OwnLock()  # reentrant: an owner may be finalised while the lock is held

    def __len__(self) -> int:
        return len(self._contexts)

    def __contains__(self, owner: object) -> bool:
        return id(owner) in self._contexts

    def get(self, owner: object, group: int, read: Callable[[], ReadContext]) -> ReadContext:
        """Context of `owner`, which belongs to `group`; calls `read` if it is not kept."""
        key = id(owner)
        with self._lock.held():
            if key in self._contexts:
                self._contexts.move_to_end(key)
                return self._contexts[key][1]
        context = read()
        with self._lock.held():
            if key not in self._contexts and self._make_room(context.n_bytes, group):
                self._contexts[key] = group, context
                self.n_bytes += context.n_bytes
                if key not in self._owners:
                    self._owners.add(key)
                    weakref.finalize(owner, self._forget, key).atexit = False
        return context

    def take(self, owner: object) -> ReadContext | None:
        """Remove the context of `owner` from the cache and return it; None if it was not kept."""
        key = id(owner)
        with self._lock.held():
            if key not in self._contexts:
                return None
            context = self._contexts[key][1]
            self._drop(key)
            return context

    def _make_room(self, n_bytes: int, group: int) -> bool:
        """Evict contexts of other groups until `n_bytes` more fit; return whether they do."""
        own = sum(context.n_bytes for of, context in self._contexts.values() if of == group)
        if own + n_bytes > self.most:
            return False
        for key, (of, _) in list(self._contexts.items()):
            if self.n_bytes + n_bytes <= self.most:
                break
            if of != group:
                self._drop(key)
        return True

    def _drop(self, key: int) -> None:
        self.n_bytes -= self._contexts.pop(key)[1].n_bytes

    def _forget(self, key: int) -> None:
        """Drop the context of a deleted owner, whose id may be reused."""
        with self._lock.held():
            self._owners.discard(key)
            if key in self._contexts:
                self._drop(key)


KEPT = Kept(KEPT_BYTES)
