"""Muon in batches: the update of torch.optim.Muon."""

import pytest
import torch

from trainer.muon import BatchedMuon


@pytest.mark.parametrize("nesterov", [True, False])
def test_batched_muon_makes_the_updates_of_torch(nesterov):
    generator = torch.Generator().manual_seed(0)
    shapes = [(48, 16), (48, 16), (16, 16), (32, 16), (16, 32), (48, 16)]
    ours, theirs = ([torch.ones(shape, requires_grad=True) for shape in shapes] for _ in range(2))
    # None of them torch's default.
    options = {"momentum": 0.8, "weight_decay": 0.2, "lr": 0.01, "nesterov": nesterov}
    optimizers = BatchedMuon(ours, **options), torch.optim.Muon(theirs, **options)
    for _ in range(3):
        # The last one has no gradient, and stays; the one before has none but zeros, and decays.
        for a, b in zip(ours[:-1], theirs[:-1], strict=True):
            a.grad = torch.randn(a.shape, generator=generator) * (a is not ours[-2])
            b.grad = a.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=0)
    assert ours[-1].eq(1).all()
