"""Loss and gradient of one microbatch: the unit of determinism."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from puicl_config import TrainConfig
from puicl_model import PUICL
from puicl_model.precision import computed_in
from trainer.loader import Batch
from trainer.reveal import revealed_rows
from trainer.state import TrainState
from trainer.teacher import Averaged, soft_targets

# Most cells of one forward and backward pass on a CPU, if `train.tasks_per_forward` is not set.
CELLS_TOGETHER = 8192


def microbatch_gradient(
    state: TrainState, batch: Batch, train: TrainConfig, share: float = 0.0
) -> Tensor:
    """Gradient and loss of one microbatch as one vector [n_parameters + 1], loss last.

    The loss is the mean cross-entropy over the unlabelled rows of a task, averaged over tasks. To
    bound memory, tasks are computed in slices of `train.tasks_per_forward`, whose gradients are
    summed in order. A `share` of the true negatives, or of the rows of both classes
    (`train.reveal`), is shown with its labels and left out of the loss. With
    `train.self_distillation` the targets are soft.
    """
    device = state.gradient.device
    state.gradient.zero_()
    state.model.precision = computed_in(train.precision, device)
    state.model.recompute = train.recompute
    n_tasks = len(batch.x)
    slices = train.tasks_per_forward or tasks_together(state.model, batch, device)
    shown = None
    if share > 0:
        rows = revealed_rows(train, batch.address, batch.y.numpy(), share)
        shown = torch.from_numpy(rows)
    soft = None
    if weight := train.self_distillation.weight:
        soft = soft_targets(Averaged(state.model, state.ema), batch, train)
        soft = torch.lerp(batch.y.float(), soft, weight)
    total = torch.zeros((), device=device)
    for start in range(0, n_tasks, slices):
        tasks = slice(start, start + slices)
        x, y = _send(batch.x[tasks], device), _send(batch.y[tasks], device)
        revealed = None if shown is None else _send(shown[tasks], device)
        tokens: tuple[Tensor, ...] = ()
        if revealed is not None:
            tokens = (revealed & (y == 0),)
            if train.reveal == "both":
                tokens += (revealed & (y == 1),)
        logits = state.model(x, batch.n_labeled, *tokens)
        targets = y.flatten()
        if soft is not None:
            positive = _send(soft[tasks], device).flatten()
            targets = torch.stack([1 - positive, positive], dim=1)
        losses = F.cross_entropy(logits.float().flatten(0, 1), targets, reduction="none")
        losses = losses.view_as(y)  # tasks, unlabelled rows
        if revealed is None:
            loss = losses.mean(dim=1).sum() / n_tasks
        else:
            hidden = (~revealed).float()
            # A task whose rows are all shown contributes no loss.
            asked = hidden.sum(dim=1).clamp(min=1)
            loss = ((losses * hidden).sum(dim=1) / asked).sum() / n_tasks
        loss.backward()
        total += loss.detach()
    return torch.cat([state.gradient, total.reshape(1)])


def _send(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy to the device; for a GPU asynchronously, from pinned memory."""
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def tasks_together(model: PUICL, batch: Batch, device: torch.device) -> int:
    """Default number of tasks in a forward pass.

    All on a GPU. On a CPU, at most `CELLS_TOGETHER` cells, but at least one task, in slices of
    nearly equal size: small slices are faster there and need less memory.
    """
    tasks, rows, d = batch.x.shape
    if device.type != "cpu":
        return tasks
    cells = (rows + model.config.thinking_rows) * (d + 1)
    slices = math.ceil(tasks / max(1, CELLS_TOGETHER // cells))
    return math.ceil(tasks / slices)
