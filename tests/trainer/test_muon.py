"""Muon in batches: the update of torch.optim.Muon."""

import torch

from trainer.muon import BatchedMuon


def test_batched_muon_makes_the_updates_of_torch():
    generator = torch.Generator().manual_seed(0)
    shapes = [(48, 16), (48, 16), (16, 16), (32, 16), (16, 32)]
    ours, theirs = ([torch.ones(shape, requires_grad=True) for shape in shapes] for _ in range(2))
    options = {"momentum": 0.95, "weight_decay": 0.1, "lr": 0.01}
    optimizers = BatchedMuon(ours, **options), torch.optim.Muon(theirs, **options)
    for _ in range(3):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn(a.shape, generator=generator)
            b.grad = a.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
