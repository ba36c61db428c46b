"""Machine code for passes over all cells: sum and norm, GELU and their gradients, in bfloat16.

A single pass reads its inputs, computes in float32 and writes the results, whereas separate
operations would write every intermediate result to memory. Rows of `width` numbers are processed in
chunks. Sums over all rows are written as one partial sum per chunk, so that the result does not
depend on the number of threads that share the chunks.
"""

import functools

from llvmlite import ir

from puicl_model.machine_code import FLOAT, LANES, Code, compiled, vector

ROWS = 256  # rows in a chunk

# Parameters of a call: addresses, the number of rows and, for norms, the bits of epsilon as
# float32. h, update, x, slope (the incoming gradient) and out are bfloat16 [rows, width]; bias,
# weight and shift are float32 [width]; stats are float32 [rows, 2]; sums are float32 [chunks,
# number of sums, width].
PARAMETERS = (
    *("h", "update", "x", "bias", "weight", "shift", "stats", "slope", "out", "sums"),
    *("rows", "epsilon"),
)

# The normal distribution function and the derivative of GELU, both minus 1/2 and divided by z, as
# polynomials in 2 (z / _BOUND)^2 - 1, constant term first. z is clipped to +-_BOUND; the error is
# below 7e-5 everywhere.
_BOUND = 4.5
_NORMAL = (
    *(0.156902113, -0.0771719604, 0.0548185686, -0.040555764, 0.0276293985),
    *(-0.0167440544, 0.012208534, -0.00932853048, 0.00335368296),
)
_SLOPE = (
    *(0.159445756, -0.0899230007, 0.0861859258, -0.0953676624, 0.105038982),
    *(-0.0877581466, 0.0477326424, -0.0454835295, 0.0559670814, -0.0247234101),
)


class _Pass(Code):
    """Builder for a function over chunks of rows of `width` numbers."""

    def __init__(self, name: str, width: int):
        super().__init__(name, PARAMETERS, native=True)
        self.width = width
        self.parts = range(width // LANES)

    def rows(self, chunk):
        """Loop over the row numbers of a chunk."""
        first = self.mul(chunk, self.number(ROWS))
        last = self.smaller(self.add(first, self.number(ROWS)), self.told["rows"])
        return self.loop(last, first)

    def numbers(self, name: str, row, part: int):
        """16 numbers of a bfloat16 row, as float32."""
        return self.widened(self.at(self.at(self.told[name], row, 2 * self.width), part, 32))

    def write(self, values, name: str, row, part: int) -> None:
        to = self.at(self.at(self.told[name], row, 2 * self.width), part, 32)
        self.put(self.rounded(values), to)

    def column(self, name: str, part: int):
        """16 numbers of a float32 vector [width]."""
        return self.get(vector(FLOAT), self.at(self.told[name], part, 64), 4)

    def sums(self, chunk, count: int) -> list:
        """Zero the `count` partial sums of a chunk and return their addresses."""
        here = self.at(self.told["sums"], chunk, count * self.width * 4)
        for i in range(count * self.width // LANES):
            self.put(self.real(0.0), self.at(here, i, 64), 4)
        return [self.at(here, i, self.width * 4) for i in range(count)]

    def add_to(self, sums, part: int, values) -> None:
        place = self.at(sums, part, 64)
        self.put(self.fadd(self.get(vector(FLOAT), place, 4), values), place, 4)

    def mean(self, total):
        """Mean over a row, in every lane, from the lane-wise sum of its parts."""
        share = ir.Constant(FLOAT, 1 / self.width)
        return self.same(self.fmul(self.across(self.fadd, total), share))

    def polynomial(self, coefficients: tuple[float, ...], z):
        """1/2 + z times one of the polynomials above."""
        z = self.largest(self.real(-_BOUND), z)
        z = self.select(self.fcmp_ordered(">", z, self.real(_BOUND)), self.real(_BOUND), z)
        u = self.fma(self.fmul(z, z), self.real(2 / _BOUND**2), self.real(-1.0))
        value = self.real(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = self.fma(value, u, self.real(coefficient))
        return self.fma(value, z, self.real(0.5))


def _norm(width: int, centred: bool) -> Code:
    """Write x = h + update + bias, out = norm(x) weight + shift, and stats: mean and 1 / spread."""
    code = _Pass("norm", width)
    epsilon = code.bitcast(code.trunc(code.told["epsilon"], ir.IntType(32)), FLOAT)
    with code.loop(code.last, code.first) as chunk, code.rows(chunk) as row:
        values, total = [], code.real(0.0)
        for part in code.parts:
            both = code.fadd(code.numbers("h", row, part), code.numbers("update", row, part))
            values.append(code.fadd(both, code.column("bias", part)))
            total = code.fadd(total, values[-1])
            code.write(values[-1], "x", row, part)
        mean = code.mean(total) if centred else code.real(0.0)
        squares = code.real(0.0)
        for i, value in enumerate(values):
            values[i] = code.fsub(value, mean)
            squares = code.fma(values[i], values[i], squares)
        spread = code.root(code.fadd(code.mean(squares), code.same(epsilon)))
        inverse = code.fdiv(code.real(1.0), spread)
        for part, value in zip(code.parts, values, strict=True):
            scaled = code.fmul(code.fmul(value, inverse), code.column("weight", part))
            if centred:
                scaled = code.fadd(scaled, code.column("shift", part))
            code.write(scaled, "out", row, part)
        stats = code.at(code.told["stats"], row, 8)
        for i, value in enumerate((mean, inverse)):
            code.put(code.extract_element(value, ir.IntType(32)(0)), code.at(stats, i, 4), 4)
    code.ret_void()
    return code


def _norm_gradient(width: int, centred: bool) -> Code:
    """Write gradients. out: of x; sums: of bias, weight and shift."""
    code = _Pass("norm_gradient", width)
    with code.loop(code.last, code.first) as chunk:
        sums = code.sums(chunk, 3)
        with code.rows(chunk) as row:
            stats = code.at(code.told["stats"], row, 8)
            mean, inverse = (code.same(code.get(FLOAT, code.at(stats, i, 4), 4)) for i in (0, 1))
            units, slopes, along, total = [], [], code.real(0.0), code.real(0.0)
            for part in code.parts:
                unit = code.numbers("x", row, part)
                unit = code.fmul(code.fsub(unit, mean) if centred else unit, inverse)
                slope = code.numbers("slope", row, part)
                code.add_to(sums[1], part, code.fmul(slope, unit))
                if centred:
                    code.add_to(sums[2], part, slope)
                slope = code.fmul(slope, code.column("weight", part))
                along = code.fma(slope, unit, along)
                total = code.fadd(total, slope)
                units.append(unit)
                slopes.append(slope)
            along = code.mean(along)
            total = code.mean(total) if centred else code.real(0.0)
            for part, unit, slope in zip(code.parts, units, slopes, strict=True):
                rest = code.fsub(code.fsub(slope, total), code.fmul(along, unit))
                rest = code.fmul(rest, inverse)
                code.add_to(sums[0], part, rest)
                code.write(rest, "out", row, part)
    code.ret_void()
    return code


def _gelu(width: int) -> Code:
    """out = GELU(x + bias)."""
    code = _Pass("gelu", width)
    with code.loop(code.last, code.first) as chunk, code.rows(chunk) as row:
        for part in code.parts:
            z = code.fadd(code.numbers("x", row, part), code.column("bias", part))
            # Clip z below as well: the polynomial's error would otherwise grow with -z.
            held = code.largest(code.real(-_BOUND), z)
            code.write(code.fmul(held, code.polynomial(_NORMAL, z)), "out", row, part)
    code.ret_void()
    return code


def _gelu_gradient(width: int) -> Code:
    """Write gradients. out: of x; sums: of bias."""
    code = _Pass("gelu_gradient", width)
    with code.loop(code.last, code.first) as chunk:
        (sums,) = code.sums(chunk, 1)
        with code.rows(chunk) as row:
            for part in code.parts:
                z = code.fadd(code.numbers("x", row, part), code.column("bias", part))
                slope = code.fmul(code.numbers("slope", row, part), code.polynomial(_SLOPE, z))
                code.add_to(sums, part, slope)
                code.write(slope, "out", row, part)
    code.ret_void()
    return code


@functools.cache
def function(name: str, width: int):
    """The compiled function for rows of `width` numbers, a multiple of 16; raises as `compiled`.

    name: "layernorm", "rmsnorm" or "gelu", followed by " gradient" for the gradient.
    """
    kind, *gradient = name.split()
    if kind == "gelu":
        return compiled((_gelu_gradient if gradient else _gelu)(width))
    return compiled((_norm_gradient if gradient else _norm)(width, kind == "layernorm"))
