"""Attention and norms written out: equal to PyTorch's, in value and gradient, in every type."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from puicl_model import kernels
from puicl_model.kernels import add_and_norm, attend

SHAPES = [  # asking, length, size of a head
    (5, 5, 16),
    (1, 21, 16),
    (40, 40, 32),
    (7, 70, 64),
    (33, 33, 8),
]


def heads(asking, length, size, dtype, spread=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(rows):
        values = torch.randn(2, 3, 2, rows, size, generator=generator, dtype=torch.float64)
        return (spread * values).to(dtype).requires_grad_()

    return draw(asking), draw(length), draw(length)


def with_gradients(function, inputs):
    """The result, and its gradients for fixed random weights."""
    result = function(*inputs)
    generator = torch.Generator().manual_seed(7)
    weights = torch.randn(result.shape, generator=generator, dtype=torch.float64)
    gradients = torch.autograd.grad((result * weights.to(result.dtype)).sum(), inputs)
    return [result.detach(), *gradients]


def plain(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_written_out_attention_is_fused_attention(shape, dtype, bound, monkeypatch):
    monkeypatch.setattr(kernels, "SHORT", 1000)
    inputs = heads(*shape, dtype, spread=0.7)
    expected = with_gradients(plain, [x.detach().double().requires_grad_() for x in inputs])
    for actual, wanted in zip(with_gradients(attend, inputs), expected, strict=True):
        assert actual.dtype == dtype
        assert relative_error(actual, wanted) < bound


@pytest.mark.parametrize("shape", SHAPES)
def test_attention_in_bfloat16_errs_by_its_rounding(shape):
    inputs = heads(*shape, torch.bfloat16, spread=0.5)
    exact = with_gradients(plain, [x.detach().double().requires_grad_() for x in inputs])
    for actual, wanted in zip(with_gradients(attend, inputs), exact, strict=True):
        assert actual.dtype == torch.bfloat16
        assert relative_error(actual, wanted) < 0.015


@pytest.mark.parametrize("spread", [6.0, 40.0])
def test_scores_too_large_for_exp_are_shifted_by_their_rows_largest(spread):
    inputs = heads(6, 6, 16, torch.float32, spread)
    assert (inputs[0] @ inputs[1].transpose(-1, -2)).abs().max() > kernels.SAFE_SCORE
    expected = with_gradients(plain, [x.detach().double().requires_grad_() for x in inputs])
    for actual, wanted in zip(with_gradients(attend, inputs), expected, strict=True):
        # One key takes all where scores are thousands: gradients there are a difference of equals.
        torch.testing.assert_close(actual.double(), wanted, rtol=1e-3, atol=1e-3 * spread)


def test_scores_so_low_that_every_exp_vanishes_are_shifted_too():
    q, k, v = (x.detach() for x in heads(6, 6, 16, torch.float32))
    inputs = [x.requires_grad_() for x in (-3 - q.abs(), 3 + k.abs(), v)]
    assert (inputs[0] @ inputs[1].transpose(-1, -2)).exp().max() == 0
    expected = with_gradients(plain, [x.detach().double().requires_grad_() for x in inputs])
    for actual, wanted in zip(with_gradients(attend, inputs), expected, strict=True):
        torch.testing.assert_close(actual.double(), wanted, rtol=1e-3, atol=1e-3)


def test_scores_of_long_axes_are_shifted_though_queries_and_keys_are_short():
    inputs = heads(40, 40, 16, torch.bfloat16, spread=2.5)
    q, k, _ = (x.detach().double() for x in inputs)
    assert k.shape[-2] > kernels.SHORT
    assert (q.norm(dim=-1).amax() + k.norm(dim=-1).amax()) < kernels.SAFE_SCORE
    assert (q @ k.transpose(-1, -2)).max() > math.log(torch.finfo(torch.bfloat16).max)
    expected = plain(*(x.detach().double() for x in inputs))
    assert relative_error(attend(*inputs).detach(), expected) < 0.15  # scores, too, are rounded


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_pieces_and_recomputed_weights_change_no_bit(monkeypatch, dtype):
    inputs = heads(20, 20, 16, dtype)
    whole = with_gradients(attend, inputs)
    monkeypatch.setattr(kernels, "KEPT_BYTES", 0)
    for expected, actual in zip(whole, with_gradients(attend, inputs), strict=True):
        assert actual.equal(expected)
    monkeypatch.setattr(kernels, "PIECE_BYTES", 5000)
    for expected, actual in zip(whole, with_gradients(attend, inputs), strict=True):
        torch.testing.assert_close(actual, expected, rtol=2**-7, atol=2**-7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_without_a_gradient_queries_pass_in_pieces_to_the_same_answer(monkeypatch, dtype):
    monkeypatch.setattr(kernels, "SHORT", 1000)
    inputs = heads(50, 50, 16, dtype)
    expected = attend(*inputs)
    with torch.no_grad():
        for pieces in (1, 3000, 30_000):
            monkeypatch.setattr(kernels, "PIECE_BYTES", pieces)
            tolerance = 1e-12 if dtype == torch.float64 else 2**-7
            torch.testing.assert_close(attend(*inputs), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("passes", [True, False], ids=["in one pass", "in many"])
@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
def test_norms_in_bfloat16_are_those_in_float32_but_for_rounding(monkeypatch, kind, passes):
    if not passes:
        monkeypatch.setattr(kernels, "can_pass", lambda x: False)
    generator = torch.Generator().manual_seed(1)
    norm = kind(32, eps=1e-5)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.copy_(1 + 0.3 * torch.randn(32, generator=generator))
    h, update = (torch.randn(3, 5, 7, 32, generator=generator) for _ in range(2))
    h[0, 0], update[0, 0] = h[0, 0] / 1000, 0  # so small that the norm's eps is most of it
    results = {}
    for dtype in (torch.float32, torch.bfloat16):
        start = h.to(dtype).detach().clone().requires_grad_()
        result = add_and_norm(start, update.to(dtype), None, norm)
        assert result.dtype == dtype
        loss = (result.float() * h.roll(1, -1)).sum()
        gradients = torch.autograd.grad(loss, [start, *norm.parameters()])
        assert all(gradient.dtype == torch.float32 for gradient in gradients[1:])
        results[dtype] = [result.detach(), *gradients]
    for exact, rough in zip(*results.values(), strict=True):
        assert relative_error(rough, exact.double()) < 0.02


class Saturation(nn.Module):
    """tanh(h) times a weight: no norm, but it may stand in a norm's place."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2.0, 32))

    def forward(self, x):
        return self.weight * torch.tanh(x)


class Doubled(nn.RMSNorm):
    def forward(self, x):
        return 2 * super().forward(x)


OTHERS = {
    "saturation": Saturation(),
    "doubled": Doubled(32),
    "identity": nn.Identity(),
    "no shift": nn.LayerNorm(32, bias=False),
    "no weight": nn.RMSNorm(32, eps=1e-5, elementwise_affine=False),
    "eps of the type": nn.RMSNorm(32),
}


@pytest.mark.parametrize("norm", OTHERS.values(), ids=OTHERS)
def test_another_norm_is_computed_as_it_is_in_bfloat16_too(norm):
    generator = torch.Generator().manual_seed(1)
    h, update, bias = (
        torch.randn(*shape, 32, generator=generator) for shape in ((4, 5), (4, 5), ())
    )
    expected = norm(h + update + bias)
    torch.testing.assert_close(add_and_norm(h, update, bias, norm), expected)
    rough = add_and_norm(h.bfloat16(), update.bfloat16(), bias, norm)
    assert rough.dtype == torch.bfloat16
    assert relative_error(rough, expected.double()) < 0.02
