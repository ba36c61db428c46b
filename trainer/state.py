"""What training changes: weights, their moving average, and AdamW's moments."""

import torch
from torch import Tensor

from puicl_config import Config
from puicl_model import PUICL


class TrainState:
    """Model, EMA and optimizer after `step` updates, with one flat gradient buffer."""

    def __init__(self, config: Config, device: torch.device):
        train = config.train
        generator = torch.Generator().manual_seed(train.seed)
        self.step = 0
        self.model = PUICL(config.model, generator).to(device)
        self.parameters = dict(self.model.named_parameters())
        self.ema = {name: p.detach().clone() for name, p in self.parameters.items()}
        self._ema_decay = train.ema_decay
        self._clip_norm = train.clip_norm
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(),
            betas=(train.beta1, train.beta2),
            eps=train.adam_epsilon,
            weight_decay=train.weight_decay,
            fused=True,
        )
        # Gradients are views of one vector: it is what processes exchange.
        total = sum(p.numel() for p in self.parameters.values())
        self.gradient = torch.zeros(total, device=device)
        offset = 0
        for p in self.parameters.values():
            p.grad = self.gradient[offset : offset + p.numel()].view_as(p)
            offset += p.numel()

    def update(self, gradient: Tensor, learning_rate: float) -> float:
        """One clipped AdamW update and its EMA; returns the gradient's norm before clipping."""
        self.gradient.copy_(gradient)
        norm = torch.linalg.vector_norm(self.gradient).item()
        if norm > self._clip_norm:
            self.gradient.mul_(self._clip_norm / norm)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.ema.values()), list(self.parameters.values()), 1 - self._ema_decay
            )
        self.gradient.zero_()
        self.step += 1
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """Everything a checkpoint holds, by name."""
        tensors = {}
        for name, p in self.parameters.items():
            moments = self.optimizer.state.get(p)
            tensors[f"model.{name}"] = p.detach()
            tensors[f"ema.{name}"] = self.ema[name]
            for moment in ("exp_avg", "exp_avg_sq"):
                tensors[f"{moment}.{name}"] = (
                    moments[moment] if moments else torch.zeros_like(p)
                ).detach()
        return tensors

    def restore(self, tensors: dict[str, Tensor], step: int) -> None:
        """Go back to the state after `step` updates."""
        self.step = step
        with torch.no_grad():
            for name, p in self.parameters.items():
                p.copy_(tensors[f"model.{name}"])
                self.ema[name].copy_(tensors[f"ema.{name}"])
                self.optimizer.state[p] = {
                    "step": torch.tensor(float(step), device=p.device),
                    "exp_avg": tensors[f"exp_avg.{name}"].to(p.device).clone(),
                    "exp_avg_sq": tensors[f"exp_avg_sq.{name}"].to(p.device).clone(),
                }
