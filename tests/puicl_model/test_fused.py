"""Fused attention is plain attention, for every shape and number of threads."""

import math

import pytest
import torch

from puicl_model import attention_code, blocks, fused, machine_code, tile_attention, tile_code

native = pytest.mark.skipif(
    not machine_code.has_pair_dot(), reason="this processor has no AVX512-BF16"
)
tiles = pytest.mark.skipif(not tile_code.has_tiles(), reason="this processor has no tiles")


@pytest.fixture(params=["vectors", "vectors emulated", "tiles", "tiles emulated"])
def code(request, monkeypatch):
    """Runs a test with the processor's own instructions, and with what stands in for them."""
    module = tile_attention if request.param.startswith("tiles") else attention_code
    native = "emulated" not in request.param
    has = tile_code.has_tiles if module is tile_attention else machine_code.has_pair_dot
    if native and not has():
        pytest.skip("this processor has no such instructions")
    if not native:
        function = module.function
        monkeypatch.setattr(
            module, "function", lambda name, size: function(name, size, native=False)
        )
    monkeypatch.setattr(fused, "_code", lambda size, length: module)


def projection(b, rows, columns, parts, heads, size, spread=0.7, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(b, rows, columns, parts, heads, size, generator=generator)
    return (spread * values).bfloat16()


def plain(q, kv, axis, bias=None):
    """The same in the numbers' own type, as one would write it."""
    q, k, v = fused._parts(q, kv)
    q = math.log(2) * (q if bias is None else q + bias.view(q.shape[-2:]))
    into = (0, 2, 3, 1, 4) if axis == 1 else (0, 1, 3, 2, 4)
    back = (0, 3, 1, 2, 4) if axis == 1 else (0, 1, 3, 2, 4)
    q, k, v = (x.permute(into) for x in (q, k, v))
    return (torch.softmax(q @ k.transpose(-1, -2), -1) @ v).permute(back).flatten(-2)


def with_gradients(function, q, kv, axis, dtype, bias=None):
    given = [x.detach().to(dtype).requires_grad_() for x in (q, kv) if x is not None]
    inputs = given.copy()
    if bias is not None:
        wide = torch.promote_types(dtype, torch.float32)
        inputs.append(bias.detach().to(wide).requires_grad_())
    result = function(*([None] * (2 - len(given))), *given, axis, *inputs[len(given) :])
    generator = torch.Generator().manual_seed(5)
    slope = torch.randn(result.shape, generator=generator).bfloat16().to(dtype)
    return [result.detach(), *torch.autograd.grad(result, inputs, slope)]


def relative_error(actual, expected):
    return ((actual.double() - expected).norm() / expected.norm().clamp(min=1e-6)).item()


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(
    ("shape", "asking"),
    [
        ((2, 50, 3, 3, 2, 16), None),
        ((1, 33, 21, 3, 2, 32), None),
        ((3, 16, 16, 3, 1, 16), None),
        ((2, 1, 2, 3, 2, 16), None),
        ((2, 37, 5, 2, 2, 16), 7),
        ((1, 5, 19, 2, 2, 32), 1),
    ],
)
@pytest.mark.usefixtures("code")
def test_it_is_plain_attention_but_for_rounding(shape, asking, axis):
    kv = projection(*shape)
    q = None
    if asking is not None:
        q_shape = [*shape[:3], 1, *shape[4:]]
        q_shape[axis] = asking
        q = projection(*q_shape, seed=1)[:, :, :, 0]
    expected = with_gradients(plain, q, kv, axis, torch.float64)
    actual = with_gradients(fused.attend_merged, q, kv, axis, torch.bfloat16)
    for ours, wanted in zip(actual, expected, strict=True):
        assert ours.dtype == torch.bfloat16
        assert ours.shape == wanted.shape
        assert relative_error(ours, wanted) < 0.006  # one rounding alone: 0.002


@pytest.mark.parametrize(("size", "axis"), [(16, 1), (16, 2), (32, 1)])
@pytest.mark.usefixtures("code")
def test_a_bias_is_added_to_the_queries_and_has_its_gradient(size, axis):
    kv = projection(2, 37, 18, 3, 2, size)
    bias = torch.linspace(-1, 1, 2 * size)
    expected = with_gradients(plain, None, kv, axis, torch.float64, bias)
    actual = with_gradients(fused.attend_merged, None, kv, axis, torch.bfloat16, bias)
    assert actual[2].dtype == torch.float32
    for ours, wanted in zip(actual, expected, strict=True):
        assert relative_error(ours, wanted) < 0.008
    without = with_gradients(plain, None, kv, axis, torch.float64)
    assert relative_error(without[0], expected[0]) > 0.03


@pytest.mark.parametrize("asks", [7, None])
@pytest.mark.parametrize("axis", [1, 2])
def test_a_block_gives_it_scale_and_biases_as_plain_attention_has_them(monkeypatch, axis, asks):
    """On any processor: what it computes is written out here."""
    attention = blocks.Attention(32, heads=2, axis=axis, scalable=axis == 1).double()
    generator = torch.Generator().manual_seed(0)
    for parameter in attention.parameters():
        parameter.data.normal_(std=0.3, generator=generator)
    h = torch.randn(2, 9, 8, 32, generator=generator, dtype=torch.float64)
    asking = h if asks is None else h.narrow(axis, 1, asks)
    expected, bias = attention(asking, h)
    assert bias is None
    monkeypatch.setattr(blocks, "can_attend", lambda h, size: True)
    monkeypatch.setattr(blocks, "attend_merged", plain)
    actual, bias = attention(asking, h)
    torch.testing.assert_close(actual + bias, expected)


# What stands in for instructions takes fifteen seconds to compile at this size.
@pytest.mark.usefixtures("code")
@pytest.mark.parametrize(
    "code",
    [
        "vectors",
        "tiles",
        pytest.param("vectors emulated", marks=pytest.mark.slow),
        pytest.param("tiles emulated", marks=pytest.mark.slow),
    ],
    indirect=True,
)
@pytest.mark.parametrize("rows", [43, 64, 150])
def test_heads_of_64_are_plain_attention_too(rows):
    kv, bias = projection(1, rows, 2, 3, 1, 64), torch.linspace(-1, 1, 64)
    expected = with_gradients(plain, None, kv, 1, torch.float64, bias)
    actual = with_gradients(fused.attend_merged, None, kv, 1, torch.bfloat16, bias)
    for ours, wanted in zip(actual, expected, strict=True):
        assert relative_error(ours, wanted) < 0.012  # of more numbers, larger scores


@pytest.mark.usefixtures("code")
def test_weights_are_exact_but_for_the_results_rounding():
    # Equal values come out as they are, whatever the weights: these add up to one.
    kv = projection(1, 300, 2, 3, 2, 16, spread=1.0)
    kv[:, :, :, 2] = 1.5
    assert (fused.attend_merged(None, kv, 1) - 1.5).abs().max() <= 1.5 * 2**-7


@pytest.mark.parametrize("spread", [8.0, 3000.0])
@pytest.mark.usefixtures("code")
def test_huge_scores_stay_finite_and_right(spread):
    kv = projection(2, 40, 3, 3, 2, 16, spread)
    expected = with_gradients(plain, None, kv, 1, torch.float64)
    actual = with_gradients(fused.attend_merged, None, kv, 1, torch.bfloat16)
    assert all(x.isfinite().all() for x in actual)
    assert relative_error(actual[0], expected[0]) < 0.01
    if spread < 100:  # beyond, one key takes all and gradients are a difference of equals
        assert relative_error(actual[1], expected[1]) < 0.03


@pytest.mark.usefixtures("code")
def test_all_scores_far_below_zero_are_no_zero_division():
    kv = projection(1, 20, 1, 3, 1, 16)
    kv[:, :, :, 0], kv[:, :, :, 1] = 40.0, -40.0
    expected = plain(None, kv.double(), 1)
    assert relative_error(fused.attend_merged(None, kv, 1), expected) < 0.006


@tiles
@pytest.mark.parametrize("size", fused.SIZES)
def test_on_tiles_it_is_what_it_is_without_but_for_rounding(monkeypatch, size):
    kv, bias = projection(2, 150, 3, 3, 2, size), torch.linspace(-1, 1, 2 * size)
    found = []
    for module in (tile_attention, attention_code):
        monkeypatch.setattr(fused, "_code", lambda size, length, module=module: module)
        found.append(with_gradients(fused.attend_merged, None, kv, 1, torch.bfloat16, bias))
    for ours, wanted in zip(*found, strict=True):
        assert relative_error(ours, wanted.double()) < 0.006


@tiles
def test_numbers_too_small_for_tiles_are_numbers_again_after_them():
    tiny = torch.tensor([1e-39])
    fused.attend_merged(None, projection(1, 40, 2, 3, 1, 32), 1)
    assert (tiny * 0.5 > 0).all()


def test_long_axes_take_tiles_where_there_are_some():
    here = tile_attention if tile_code.has_tiles() else attention_code
    assert fused._code(64, 17) is here
    assert fused._code(64, 16) is attention_code


@native
@pytest.mark.parametrize("axis", [1, 2])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, parts_of_work, axis):
    kv = projection(2, 45, 7, 3, 2, 16)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    one = with_gradients(fused.attend_merged, None, kv, axis, torch.bfloat16)
    assert not parts_of_work
    for count in (2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda count=count: count)
        several = with_gradients(fused.attend_merged, None, kv, axis, torch.bfloat16)
        assert all(x.equal(y) for x, y in zip(one, several, strict=True))
    assert parts_of_work == [2, 2, 3, 3, 7, 7]


@native
def test_strided_inputs_are_read_as_they_lie():
    kv = projection(2, 30, 4, 3, 2, 16)
    turned = kv.transpose(1, 2).contiguous().transpose(1, 2)
    assert not turned.is_contiguous()
    assert fused.attend_merged(None, turned, 1).equal(fused.attend_merged(None, kv, 1))


@native
def test_nobody_asking_leaves_no_gradient():
    kv = projection(2, 30, 4, 2, 2, 16).requires_grad_()
    q = torch.empty(2, 0, 4, 2, 16, dtype=torch.bfloat16, requires_grad=True)
    result = fused.attend_merged(q, kv, 1)
    assert result.shape == (2, 0, 4, 32)
    result.sum().backward()
    assert not kv.grad.any()


@native
def test_a_missing_number_stays_missing():
    kv = projection(1, 20, 2, 3, 1, 16)
    kv[0, 4, 1, 1, 0, 3] = float("nan")
    result = fused.attend_merged(None, kv, 1)
    assert result[:, :, 0].isfinite().all()
    assert result[:, :, 1].isnan().all()


def test_only_what_was_measured_to_gain_takes_it():
    h = torch.empty(1, 4, 3, 64, dtype=torch.bfloat16)
    assert fused.can_attend(h, 16) == machine_code.has_pair_dot()
    assert not fused.can_attend(h.float(), 16)
    assert not fused.can_attend(h, 24)
    assert not fused.can_attend(h.to("meta"), 16)
