"""The Triton kernels of `gpu_passes`, for rows of E numbers, ROWS rows a block, sums in float32.

For gradients of parameters that all rows share, a program sums over its EACH blocks and writes one
row of `shares` [programs, ...]. The caller adds these up, so that the result is deterministic.
"""

import triton
import triton.language as tl


@triton.jit
def _block(number, n, E: tl.constexpr, ROWS: tl.constexpr):
    """Offsets of the numbers in a block of rows, and a mask of the rows that exist."""
    row = number.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    return row[:, None] * E + tl.arange(0, E)[None, :], (row < n)[:, None]


@triton.jit
def _cumulative(x):
    """The standard normal distribution function."""
    return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def norm_forward(h, update, bias, weight, out, n, eps, E: tl.constexpr, ROWS: tl.constexpr):
    """out = RMSNorm(h + update + bias) * weight."""
    at, there = _block(tl.program_id(0), n, E, ROWS)
    number = tl.arange(0, E)
    x = tl.load(h + at, mask=there, other=0.0).to(tl.float32)
    x += tl.load(update + at, mask=there, other=0.0).to(tl.float32)
    x += tl.load(bias + number)[None, :]
    inverse = tl.rsqrt(tl.sum(x * x, 1) / E + eps)
    y = x * inverse[:, None] * tl.load(weight + number)[None, :]
    tl.store(out + at, y.to(out.dtype.element_ty), mask=there)


@triton.jit
def norm_gradient(
    h,
    update,
    bias,
    weight,
    gradient,
    result,
    shares,
    n,
    eps,
    E: tl.constexpr,
    ROWS: tl.constexpr,
    EACH: tl.constexpr,
):
    """Write gradients. result: of h and of update; shares [programs, 2, E]: of weight and bias."""
    number = tl.arange(0, E)
    b = tl.load(bias + number)[None, :]
    w = tl.load(weight + number)[None, :]
    of_weight = tl.zeros([E], tl.float32)
    of_bias = tl.zeros([E], tl.float32)
    for place in range(EACH):
        block = tl.program_id(0) * EACH + place
        at, there = _block(block, n, E, ROWS)
        x = tl.load(h + at, mask=there, other=0.0).to(tl.float32)
        x += tl.load(update + at, mask=there, other=0.0).to(tl.float32)
        x += b
        g = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        inverse = tl.rsqrt(tl.sum(x * x, 1) / E + eps)[:, None]
        unit = x * inverse
        along = tl.sum(g * w * unit, 1)[:, None] / E
        dx = inverse * (g * w - unit * along)
        tl.store(result + at, dx.to(result.dtype.element_ty), mask=there)
        of_weight += tl.sum(g * unit, 0)
        of_bias += tl.sum(tl.where(there, dx, 0.0), 0)
    to = shares + tl.program_id(0) * (2 * E) + number
    tl.store(to, of_weight)
    tl.store(to + E, of_bias)


@triton.jit
def gelu_forward(x, bias, out, n, E: tl.constexpr, ROWS: tl.constexpr):
    """out = GELU(x + bias)."""
    at, there = _block(tl.program_id(0), n, E, ROWS)
    y = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
    y += tl.load(bias + tl.arange(0, E))[None, :]
    tl.store(out + at, (y * _cumulative(y)).to(out.dtype.element_ty), mask=there)


@triton.jit
def gelu_gradient(
    x,
    bias,
    gradient,
    result,
    shares,
    n,
    E: tl.constexpr,
    ROWS: tl.constexpr,
    EACH: tl.constexpr,
):
    """Write gradients. result: of x; shares [programs, E]: of bias."""
    number = tl.arange(0, E)
    b = tl.load(bias + number)[None, :]
    of_bias = tl.zeros([E], tl.float32)
    for place in range(EACH):
        block = tl.program_id(0) * EACH + place
        at, there = _block(block, n, E, ROWS)
        y = tl.load(x + at, mask=there, other=0.0).to(tl.float32) + b
        g = tl.load(gradient + at, mask=there, other=0.0).to(tl.float32)
        density = tl.exp(-0.5 * y * y) * 0.3989422804014327
        dx = g * (_cumulative(y) + y * density)
        tl.store(result + at, dx.to(result.dtype.element_ty), mask=there)
        of_bias += tl.sum(dx, 0)
    tl.store(shares + tl.program_id(0) * E + number, of_bias)
