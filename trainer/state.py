"""The training state: weights, their exponential moving average (EMA), optimizer moments."""

from collections.abc import Mapping

import torch
from torch import Tensor

from puicl_config import Config, InputError, TrainConfig
from puicl_model import PUICL
from trainer.muon import BatchedMuon


class TrainState:
    """Model, EMA and optimizer after `step` updates, with one flat gradient buffer."""

    def __init__(self, config: Config, device: torch.device):
        train = config.train
        generator = torch.Generator().manual_seed(train.seed)
        self.step = 0
        self.model = PUICL(config.model, generator).to(device)
        if train.compile:
            for block in self.model.blocks:
                block.compile(dynamic=True)
        self.parameters = dict(self.model.named_parameters())
        self.ema = {name: p.detach().clone() for name, p in self.parameters.items()}
        self._ema_decay = train.ema_decay
        self._clip_norm = train.clip_norm
        self._optimizers = _optimizers(self.parameters, train)
        # Gradients are views of one vector, which the processes exchange.
        total = sum(p.numel() for p in self.parameters.values())
        self.gradient = torch.zeros(total, device=device)
        offset = 0
        for p in self.parameters.values():
            p.grad = self.gradient[offset : offset + p.numel()].view_as(p)
            offset += p.numel()

    def update(self, gradient: Tensor, learning_rate: float) -> Tensor:
        """Clip `gradient` [n_parameters], update the weights and their EMA, advance `step`.

        Returns the norm before clipping as a tensor; never waits for the device.
        """
        self.gradient.copy_(gradient)
        norm = torch.linalg.vector_norm(self.gradient)
        self.gradient.mul_((self._clip_norm / norm).clamp(max=1.0))
        for optimizer, ratio in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * ratio
            optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.ema.values()), list(self.parameters.values()), 1 - self._ema_decay
            )
        self.step += 1
        return norm

    def tensors(self) -> dict[str, Tensor]:
        """All tensors of a checkpoint, by name.

        AdamW's step count of a parameter is included only if it is not `step`, that is, if its
        moments began in another run.
        """
        tensors = {}
        for name, p in self.parameters.items():
            tensors[f"model.{name}"] = p.detach()
            tensors[f"ema.{name}"] = self.ema[name]
            optimizer = self._optimizer_of(p)
            for moment in _MOMENTS[type(optimizer)]:
                kept = optimizer.state[p].get(moment)
                tensors[f"{moment}.{name}"] = torch.zeros_like(p) if kept is None else kept
            count = int(optimizer.state[p].get("step", self.step))
            if count != self.step:
                tensors[f"step.{name}"] = torch.tensor(count)
        return {name: tensor.detach() for name, tensor in tensors.items()}

    def restore(self, tensors: dict[str, Tensor], step: int) -> None:
        """Go back to the state after `step` updates."""
        self.step = step
        with torch.no_grad():
            for name, p in self.parameters.items():
                p.copy_(tensors[f"model.{name}"])
                self.ema[name].copy_(tensors[f"ema.{name}"])
                moments = _MOMENTS[type(self._optimizer_of(p))]
                count = int(tensors.get(f"step.{name}", step))
                self._set_moments(p, {m: tensors[f"{m}.{name}"] for m in moments}, count)

    def begin_from(self, tensors: dict[str, Tensor], step: int) -> None:
        """Take over the state of another run after its `step` updates, as this run's step 0.

        Weights and their EMA must fit, and none may be left over. A parameter's optimizer moments,
        with AdamW's step count, are taken over if the other run kept the same kinds, and start
        afresh otherwise. Raises `InputError` naming the first parameter that does not fit.
        """
        theirs_alone = sorted(
            name.removeprefix("model.")
            for name in tensors
            if name.startswith("model.") and name.removeprefix("model.") not in self.parameters
        )
        with torch.no_grad():
            for name, p in self.parameters.items():
                for kind, ours in (("model", p), ("ema", self.ema[name])):
                    theirs = tensors.get(f"{kind}.{name}")
                    if theirs is None or theirs.shape != ours.shape:
                        shape = None if theirs is None else list(theirs.shape)
                        raise InputError(
                            f"train.init_from: its {name} is {shape}, this model's is "
                            f"{list(ours.shape)}: the config's section model must be that of "
                            "its card"
                        )
                    ours.copy_(theirs)
                moments = _MOMENTS[type(self._optimizer_of(p))]
                kept = {m: tensors[f"{m}.{name}"] for m in moments if f"{m}.{name}" in tensors}
                if len(kept) == len(moments):
                    self._set_moments(p, kept, int(tensors.get(f"step.{name}", step)))
        if theirs_alone:
            deeper = " of fewer blocks" if theirs_alone[0].startswith("blocks.") else ""
            raise InputError(
                f"train.init_from: its {theirs_alone[0]} has no place in this model{deeper}: the "
                "config's section model must be that of its card"
            )

    def _set_moments(self, parameter: Tensor, moments: dict[str, Tensor], count: int) -> None:
        optimizer = self._optimizer_of(parameter)
        optimizer.state[parameter] = {
            name: torch.empty_like(parameter).copy_(moment) for name, moment in moments.items()
        }
        if isinstance(optimizer, torch.optim.AdamW):
            steps = torch.tensor(float(count), device=parameter.device)
            optimizer.state[parameter]["step"] = steps

    def _optimizer_of(self, parameter: Tensor) -> torch.optim.Optimizer:
        for optimizer, _ in self._optimizers:
            if any(parameter is p for group in optimizer.param_groups for p in group["params"]):
                return optimizer
        raise KeyError("a parameter without an optimizer")


# Tensors that each optimizer keeps for a parameter, apart from AdamW's step count.
_MOMENTS = {
    torch.optim.AdamW: ("exp_avg", "exp_avg_sq"),
    torch.optim.Muon: ("momentum_buffer",),
    BatchedMuon: ("momentum_buffer",),
}


def _optimizers(
    parameters: Mapping[str, Tensor], train: TrainConfig
) -> list[tuple[torch.optim.Optimizer, float]]:
    """Optimizers, each with the ratio of its learning rate to the schedule's.

    `train.optimizer` "muon" means Muon for the blocks' matrices and AdamW for everything else.
    """
    muon: list[Tensor] = []
    adamw: list[Tensor] = []
    for name, p in parameters.items():
        matrix = train.optimizer == "muon" and name.startswith("blocks.") and p.ndim == 2
        (muon if matrix else adamw).append(p)
    chosen: list[tuple[torch.optim.Optimizer, float]] = [
        (
            torch.optim.AdamW(
                adamw,
                betas=(train.beta1, train.beta2),
                eps=train.adam_epsilon,
                weight_decay=train.weight_decay,
                fused=True,
            ),
            1.0,
        )
    ]
    if muon:
        # On a CPU update matrices one by one, to reproduce the bits of earlier runs.
        kind = BatchedMuon if muon[0].is_cuda else torch.optim.Muon
        optimizer = kind(muon, momentum=train.muon_momentum, weight_decay=train.weight_decay)
        chosen.append((optimizer, train.muon_lr_ratio))
    return chosen
