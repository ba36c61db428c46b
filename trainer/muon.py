"""Muon for a GPU, which multiplies all matrices of one shape at once, not one by one."""

import math
from collections import defaultdict

import torch
from torch import Tensor


class BatchedMuon(torch.optim.Muon):
    """`torch.optim.Muon` with few large kernels instead of many small ones, and the same state.

    For the 36 matrices of six blocks, a step of `torch.optim.Muon` is some 3,000 kernels, which
    take a GPU as long as several microbatches; here it is some 60. Rounding differs in the last
    bits.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient.

        Raises `NotImplementedError` if given a `closure`.
        """
        if closure is not None:
            raise NotImplementedError("no closure is used here")
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            for p in params:
                if "momentum_buffer" not in self.state[p]:
                    self.state[p]["momentum_buffer"] = torch.zeros_like(p)
            kept = tuple(self.state[p]["momentum_buffer"] for p in params)
            gradients = [p.grad for p in params]
            torch._foreach_lerp_(kept, gradients, 1 - group["momentum"])
            ahead = kept
            if group["nesterov"]:
                ahead = torch._foreach_lerp(gradients, kept, group["momentum"])
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            places = defaultdict(list)
            for place, p in enumerate(params):
                places[p.shape].append(place)
            for (rows, columns), some in places.items():
                updates = orthogonalized(
                    torch.stack([ahead[place] for place in some]),
                    group["ns_coefficients"],
                    group["ns_steps"],
                    group["eps"],
                )
                # The "original" adjustment of torch.optim.Muon, its default.
                rate = group["lr"] * math.sqrt(max(1, rows / columns))
                matrices = [params[place] for place in some]
                # Converted to the matrices' float32, since mixed types would not add in one kernel.
                torch._foreach_add_(matrices, list(updates.float().unbind()), alpha=-rate)


def orthogonalized(
    matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """The matrices [n, rows, columns] with singular values moved close to one, in bfloat16.

    Runs the quintic Newton-Schulz iteration of torch.optim.Muon (Jordan, 2024) on all at once.
    """
    a, b, c = coefficients
    x = matrices.bfloat16()
    tall = x.shape[1] > x.shape[2]
    if tall:
        x = x.mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        update = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.baddbmm(x, update, x, beta=a)
    return x.mT if tall else x
