"""Elementary functions whose bits depend neither on numpy nor on the processor's instruction set.

numpy runs different code for exp, tanh, sin and the like on processors with AVX2, with AVX-512 and
with neither, and the results differ in the last place. The functions here use only additions,
multiplications, divisions, square roots and roundings, in a fixed order; IEEE 754 defines each of
these to the bit.

If `prior.arithmetic` is "portable", `activate` uses the float32 functions and the warps use the
float64 ones. Normal scores and the skewed roots of graphs always use the float64 ones. Each float32
function is a complete activation, since numba's cache does not notice a change in a function that
was inlined from another file.
"""

import numpy as np

from prior_gen.jitted import jit

_LOG2E = 1.4426950408889634
# log(2) in two parts: the first ends in zero bits, so that its integer multiples are exact.
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
# exp of a smaller argument counts as 0: there, float32's normal range ends.
_SMALLEST = np.float32(-87.0)

# The normal quantile function: AS241's polynomials near the median, and outside of that.
_QUANTILE_MIDDLE = (
    (
        *(2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4),
        *(4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3),
        *(1.3314166789178437745e2, 3.3871328727963666080e0),
    ),
    (
        *(5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4),
        *(2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2),
        *(4.2313330701600911252e1, 1.0),
    ),
)
_QUANTILE_TAIL = (
    (
        *(7.7454501427834140764e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1),
        *(1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0),
        *(4.63033784615654529590e0, 1.42343711074968357734e0),
    ),
    (
        *(1.05075007164441684324e-9, 5.475938084995344946e-4, 1.51986665636164571966e-2),
        *(1.4810397642748007459e-1, 6.897673349851000045e-1, 1.6763848301838038494e0),
        *(2.05319162663775882187e0, 1.0),
    ),
)


def exp(x: np.ndarray | float) -> np.ndarray:
    """e^x of float64 x with |x| <= 700, to a few units in the last place."""
    x = np.asarray(x, np.float64)
    whole = np.floor(x * _LOG2E + 0.5)
    rest = (x - whole * _LN2_HIGH) - whole * _LN2_LOW  # |rest| <= log(2) / 2
    series = np.ones_like(rest)
    for n in range(13, 0, -1):
        series = 1.0 + rest * series / n
    return np.ldexp(series, whole.astype(np.int32))


def log(x: np.ndarray | float) -> np.ndarray:
    """Natural logarithm of float64 x >= 0, to a few units in the last place; -inf at 0."""
    x = np.asarray(x, np.float64)
    mantissa, exponent = np.frexp(np.where(x > 0, x, 1.0))
    low = mantissa < 0.5**0.5
    mantissa, exponent = np.where(low, 2 * mantissa, mantissa), exponent - low
    # log(m) = 2 artanh(s) with |s| <= 0.172
    s = (mantissa - 1) / (mantissa + 1)
    squared, series = s * s, np.zeros_like(s)
    for n in range(21, 0, -2):
        series = series * squared + 1.0 / n
    value = exponent * _LN2_HIGH + (exponent * _LN2_LOW + 2 * s * series)
    return np.where(x > 0, value, -np.inf)


def power(x: np.ndarray, exponent: float) -> np.ndarray:
    """x^exponent of float64 x >= 0, for exponents above 0."""
    return np.where(x > 0, exp(exponent * log(np.where(x > 0, x, 1.0))), 0.0)


def sinh(x: np.ndarray) -> np.ndarray:
    """Hyperbolic sine of float64 x; near 0 the absolute error is about 1e-16, not one ulp."""
    grown = exp(x)
    return (grown - 1 / grown) / 2


def arcsinh(x: np.ndarray) -> np.ndarray:
    """Inverse hyperbolic sine of float64 x, as accurate as `sinh`."""
    size = np.abs(x)
    return np.sign(x) * log(size + np.sqrt(size * size + 1))


def normal_quantile(p: np.ndarray) -> np.ndarray:
    """Standard normal quantile of float64 p in [1e-10, 1 - 1e-10], accurate to about 1e-14.

    Wichura's AS241 (Applied Statistics 37, 1988) without its formula for the farthest tail.
    """
    p = np.asarray(p, np.float64)
    q = p - 0.5
    central = 0.180625 - q * q
    middle = q * _ratio(_QUANTILE_MIDDLE, np.maximum(central, 0.0))
    tail = np.sqrt(-log(np.where(q < 0, p, 1 - p))) - 1.6
    far = _ratio(_QUANTILE_TAIL, np.maximum(tail, -1.6))
    return np.where(np.abs(q) <= 0.425, middle, np.where(q < 0, -far, far))


def _ratio(coefficients: tuple[tuple[float, ...], tuple[float, ...]], r: np.ndarray) -> np.ndarray:
    """A quotient of two polynomials in r; coefficients from the highest power down."""
    over, under = np.zeros_like(r), np.zeros_like(r)
    for a, b in zip(*coefficients, strict=True):
        over, under = over * r + a, under * r + b
    return over / under


@jit
def rbf(x, clamp, out):
    """Write e^(-v^2) to `out`, where v is float32 x [n] clamped to +-clamp.

    Results below 1.6e-38 become 0. For the float32 number y = -v^2, e^y is within 2 units in the
    last place.
    """
    bits = np.empty(x.size, np.int32)
    for i in range(x.size):
        value = min(max(x[i], -clamp), clamp)
        value = max(-(value * value), _SMALLEST)
        whole = np.floor(value * np.float32(1.44269504) + np.float32(0.5))
        bits[i] = (np.int32(whole) + np.int32(127)) << np.int32(23)
        rest = value - whole * np.float32(0.693359375)
        rest = rest - whole * np.float32(-2.12194440e-4)
        p = np.float32(1.9875691500e-4)
        p = p * rest + np.float32(1.3981999507e-3)
        p = p * rest + np.float32(8.3334519073e-3)
        p = p * rest + np.float32(4.1665795894e-2)
        p = p * rest + np.float32(1.6666665459e-1)
        p = p * rest + np.float32(5.0000001201e-1)
        out[i] = p * rest * rest + rest + np.float32(1.0)
    scale = bits.view(np.float32)
    for i in range(x.size):
        value = min(max(x[i], -clamp), clamp)
        out[i] = out[i] * scale[i] if -(value * value) >= _SMALLEST else np.float32(0.0)


@jit
def tanh(x, clamp, out):
    """Write tanh of float32 x [n], clamped to +-clamp, to `out`: a rational function, to 4e-7."""
    for i in range(x.size):
        value = min(max(x[i], -clamp), clamp)
        # Beyond this bound, tanh is +-1 to within half a unit in the last place.
        value = min(max(value, np.float32(-7.90531110763549805)), np.float32(7.90531110763549805))
        z = value * value
        p = np.float32(-2.76076847742355e-16)
        p = p * z + np.float32(2.00018790482477e-13)
        p = p * z + np.float32(-8.60467152213735e-11)
        p = p * z + np.float32(5.12229709037114e-08)
        p = p * z + np.float32(1.48572235717979e-05)
        p = p * z + np.float32(6.37261928875436e-04)
        p = p * z + np.float32(4.89352455891786e-03)
        q = np.float32(1.19825839466702e-06)
        q = q * z + np.float32(1.18534705686654e-04)
        q = q * z + np.float32(2.26843463243900e-03)
        q = q * z + np.float32(4.89352518554385e-03)
        out[i] = value * p / q


@jit
def sin(x, clamp, out):
    """Write the sine of float32 x [n], clamped to +-clamp, to `out`.

    The error is at most 3e-7 for |x| up to 1e9, and 1e-4 up to 1e12: multiples of pi are subtracted
    in float64.
    """
    for i in range(x.size):
        value = np.float64(min(max(x[i], -clamp), clamp))
        half_turns = np.floor(value * 0.3183098861837907 + 0.5)
        rest = value - half_turns * 3.1415926218032837
        rest = rest - half_turns * 3.178650954705639e-08
        odd = half_turns - 2.0 * np.floor(half_turns * 0.5)
        angle = np.float32(rest) * np.float32(1.0 - 2.0 * odd)
        a2 = angle * angle
        sine = np.float32(2.5904300855e-6)
        sine = sine * a2 + np.float32(-1.9800865266e-4)
        sine = sine * a2 + np.float32(8.3328988403e-3)
        sine = sine * a2 + np.float32(-1.6666647792e-1)
        out[i] = sine * a2 * angle + angle
