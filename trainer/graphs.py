"""Microbatch gradients as recorded CUDA graphs (`train.cuda_graphs`).

A microbatch is some thousand small kernels, which the host launches more slowly than a current GPU
computes them. A graph is recorded once for each shape and launched as a whole. To keep the number
of shapes small, the number of rows is cut down to one of about twenty, and the number of labelled
rows is passed as data rather than as a shape (`PUICL.forward_masked`).
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from puicl_config import TrainConfig
from puicl_model.precision import computed_in
from trainer.loader import Batch, first_rows
from trainer.state import TrainState

# (bound, step): a number of rows below the bound is cut down to a multiple of the step.
_STEPS = ((128, 16), (256, 32), (512, 64))
_LAST_STEP = 128


def cut_rows(batch: Batch) -> Batch:
    """The batch with its rows cut down to one of few numbers, both kinds in proportion.

    Of 64 rows or more, at most a fifth is dropped.
    """
    rows = batch.x.shape[1]
    step = next((step for bound, step in _STEPS if rows < bound), _LAST_STEP)
    kept = max(rows - rows % step, min(rows, step))
    n_labeled = min(max(1, round(batch.n_labeled * kept / rows)), kept - 1)
    return first_rows(batch, n_labeled, kept - n_labeled)


class _Slot:
    """A graph's buffers: x [T, R, d], classes y [T, R], the number of labelled rows, the loss."""

    def __init__(self, x: Tensor, device: torch.device):
        self.x = torch.empty(x.shape, device=device)
        self.y = torch.zeros(x.shape[:2], dtype=torch.int64, device=device)
        self.rows = torch.arange(x.shape[1], device=device)
        self.n_labeled = torch.zeros((), dtype=torch.int64, device=device)
        self.loss = torch.zeros((), device=device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def fill(self, batch: Batch) -> None:
        """Copy a microbatch to the device asynchronously."""
        self.x.copy_(_pinned(batch.x, self.x.device), non_blocking=True)
        y = F.pad(batch.y, (batch.n_labeled, 0))
        self.y.copy_(_pinned(y, self.y.device), non_blocking=True)
        self.n_labeled.fill_(batch.n_labeled)


class RecordedGradients:
    """Gradients and losses of microbatches, equal to `microbatch_gradient`'s up to rounding.

    A shape's first microbatch is computed kernel by kernel, which also loads the kernels; the
    second is recorded. Recordings share their memory, so only one may run at a time.
    """

    def __init__(self, state: TrainState, train: TrainConfig):
        """train: must ask for the plain loss alone, which its schema ensures."""
        self._state = state
        state.model.precision = computed_in(train.precision, state.gradient.device)
        state.model.recompute = train.recompute
        self._slots: dict[torch.Size, _Slot] = {}
        self._stream: torch.cuda.Stream | None = None
        self._pool: Any = None
        self._recorded = state.gradient.is_cuda

    def __call__(self, batch: Batch) -> Tensor:
        """Gradient and loss of `cut_rows(batch)` as one vector [n_parameters + 1], loss last."""
        batch = cut_rows(batch)
        slot = self._slots.get(batch.x.shape)
        first = slot is None
        if slot is None:
            slot = self._slots[batch.x.shape] = _Slot(batch.x, self._state.gradient.device)
        slot.fill(batch)
        if first or not self._recorded:
            self._compute(slot)
        else:
            if slot.graph is None:
                slot.graph = self._record(slot)
            slot.graph.replay()
        return torch.cat([self._state.gradient, slot.loss.reshape(1)])

    def _record(self, slot: _Slot) -> torch.cuda.CUDAGraph:
        if self._stream is None:
            self._stream, self._pool = torch.cuda.Stream(), torch.cuda.graph_pool_handle()
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        # Like torch.cuda.graph, but without its garbage collection for each of some hundred shapes.
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=self._pool)
            self._compute(slot)
            graph.capture_end()
        torch.cuda.synchronize()
        return graph

    def _compute(self, slot: _Slot) -> None:
        self._state.gradient.zero_()
        labeled = slot.rows < slot.n_labeled
        logits = self._state.model.forward_masked(slot.x, labeled)
        losses = F.cross_entropy(logits.float().flatten(0, 1), slot.y.flatten(), reduction="none")
        share = ~labeled / (~labeled).sum()
        loss = (losses.view_as(slot.y) * share).sum() / len(slot.x)
        loss.backward()
        slot.loss.copy_(loss.detach())


def _pinned(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory() if device.type == "cuda" else tensor
