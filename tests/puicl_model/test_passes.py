"""Norm and GELU in one pass are the plain ones, for every shape and number of threads."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from puicl_model import machine_code, passes

pytestmark = pytest.mark.skipif(
    not machine_code.has_pair_dot(), reason="this processor has no AVX512-BF16"
)

# One rounding to bfloat16 alone errs by 0.0017.
ROUNDING = 0.0025
SHAPES = [(3, 5, 7, 128), (1, 1, 1, 16), (1, 257, 1, 48), (2, 300, 2, 32)]


def draw(*shape, seed=0, spread=1.0):
    return spread * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def with_gradients(function, inputs):
    """The result, and the gradients of the inputs for a fixed random slope."""
    result = function(*inputs)
    slope = draw(*result.shape, seed=9).bfloat16().to(result.dtype)
    return [result.detach(), *torch.autograd.grad(result, inputs, slope)]


def exact(inputs):
    return [x.detach().double().requires_grad_() for x in inputs]


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm()).item()


def bound(shape):
    """The gradient of a few numbers is a difference of which less is left."""
    return ROUNDING if torch.Size(shape).numel() > 100 else 2 * ROUNDING


def norm_inputs(kind, shape):
    """h, update, bias and the norm's parameters."""
    e = shape[-1]
    inputs = [draw(*shape).bfloat16(), draw(*shape, seed=1, spread=3.0).bfloat16()]
    inputs += [draw(e, seed=2), 1 + 0.5 * draw(e, seed=3)]
    if kind is nn.LayerNorm:
        inputs.append(draw(e, seed=4))
    return [x.requires_grad_() for x in inputs]


def one_pass(kind):
    def function(h, update, bias, weight, *shift):
        norm = kind(h.shape[-1], eps=1e-2, device="meta")
        values = dict(zip(("weight", "bias"), (weight, *shift), strict=False))
        for name, value in values.items():
            delattr(norm, name)
            setattr(norm, name, value)
        return passes.add_and_norm(h, update, bias, norm)

    return function


def plainly(kind):
    def function(h, update, bias, *parameters):
        norm = F.layer_norm if kind is nn.LayerNorm else F.rms_norm
        return norm(h + update + bias, h.shape[-1:], *parameters, eps=1e-2)

    return function


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
@pytest.mark.parametrize("shape", SHAPES)
def test_sum_and_norm_in_one_pass_are_plain_but_for_rounding(kind, shape):
    inputs = norm_inputs(kind, shape)
    expected = with_gradients(plainly(kind), exact(inputs))
    actual = with_gradients(one_pass(kind), inputs)
    assert [x.dtype for x in actual[:3]] == [torch.bfloat16] * 3
    assert all(x.dtype == torch.float32 for x in actual[3:])
    for ours, wanted in zip(actual, expected, strict=True):
        assert ours.shape == wanted.shape
        assert relative_error(ours, wanted) < bound(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_gelu_in_one_pass_is_the_plain_one_but_for_rounding(shape):
    inputs = [draw(*shape, spread=2.0).bfloat16(), draw(shape[-1], seed=1)]
    inputs = [x.requires_grad_() for x in inputs]
    expected = with_gradients(lambda x, bias: F.gelu(x + bias), exact(inputs))
    actual = with_gradients(passes.gelu, inputs)
    for ours, wanted in zip(actual, expected, strict=True):
        assert ours.shape == wanted.shape
        assert relative_error(ours, wanted) < bound(shape)


def test_gelu_is_right_everywhere_and_vanishes_far_below_zero():
    x = torch.linspace(-12, 12, 4096).bfloat16().view(-1, 16).requires_grad_()
    far = torch.tensor([-1e30, -1e4, 1e4, 1e30] * 4).bfloat16()
    with torch.no_grad():
        x[0] = far
    exactly = x.detach().double().requires_grad_()
    result, wanted = passes.gelu(x, torch.zeros(16)), F.gelu(exactly)
    assert ((result - wanted).abs() <= 1e-4 + 2**-8 * wanted.abs()).all()
    (slope,) = torch.autograd.grad(result.sum(), x)
    (exact_slope,) = torch.autograd.grad(wanted.sum(), exactly)
    assert ((slope - exact_slope).abs() <= 1e-4 + 2**-8 * exact_slope.abs()).all()


def test_a_missing_number_stays_missing_and_in_its_row():
    x = draw(1, 4, 1, 32).bfloat16()
    x[0, 2, 0, 5] = float("nan")
    bias, norm = torch.zeros(32), nn.LayerNorm(32)
    assert passes.gelu(x, bias).isnan().sum() == 1
    assert passes.add_and_norm(x, x, bias, norm).isnan().sum() == 32


def test_no_rows_leave_no_gradient():
    x, bias = torch.empty(2, 0, 3, 32, dtype=torch.bfloat16), torch.ones(32, requires_grad=True)
    result = passes.add_and_norm(x, x, bias, nn.RMSNorm(32, eps=1e-5))
    assert result.shape == x.shape
    (gradient,) = torch.autograd.grad(passes.gelu(result, bias).sum(), bias)
    assert not gradient.any()


@pytest.mark.parametrize("kind", [nn.LayerNorm, nn.RMSNorm])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, parts_of_work, kind):
    def everything():
        inputs = norm_inputs(kind, (2, 700, 2, 32))
        found = with_gradients(one_pass(kind), inputs)
        return found + with_gradients(passes.gelu, [inputs[1], inputs[2]])

    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    one = everything()
    assert not parts_of_work
    for count in (2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda count=count: count)
        assert all(x.equal(y) for x, y in zip(one, everything(), strict=True))
    assert parts_of_work == 4 * [2] + 4 * [3] + 4 * [7]


def test_only_bfloat16_on_a_cpu_takes_it():
    x = torch.empty(2, 3, 32, dtype=torch.bfloat16)
    assert passes.can_pass(x)
    assert not passes.can_pass(x.float())
    assert not passes.can_pass(x.to("meta"))
    assert not passes.can_pass(x[..., :24])
