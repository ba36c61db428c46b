"""Loss and gradient of one microbatch: the unit of determinism."""

import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.loader import Batch
from trainer.state import TrainState


def microbatch_gradient(
    state: TrainState, batch: Batch, precision: str, tasks_per_forward: int | None
) -> Tensor:
    """Gradient and loss of one microbatch as one vector [n_parameters + 1], loss last.

    The loss is the mean cross-entropy over the unlabelled rows of a task, averaged over tasks.
    `tasks_per_forward` bounds memory: the tasks pass in slices, whose gradients add up in order.
    """
    device = state.gradient.device
    state.gradient.zero_()
    n_tasks = len(batch.x)
    total = torch.zeros((), device=device)
    for x, y in zip(
        batch.x.split(tasks_per_forward or n_tasks),
        batch.y.split(tasks_per_forward or n_tasks),
        strict=True,
    ):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            logits = state.model(x, batch.n_labeled)
        loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten()) * (len(x) / n_tasks)
        loss.backward()
        total += loss.detach()
    return torch.cat([state.gradient, total.reshape(1)])
