"""A builder of machine code for bfloat16 on CPUs, compiled by LLVM for the current processor.

`Code` emits instructions, mostly on vectors of 16 numbers, and `compiled` turns them into a
function. Products multiply pairs of bfloat16 and accumulate in float32: `pair_dot` is a single
instruction on processors with AVX512-BF16. Addresses are plain integers, so that LLVM does not
hoist loads out of loops, which would need more registers than there are.
"""

import ctypes
from contextlib import contextmanager

import llvmlite.binding as llvm
from llvmlite import ir

LANES = 16

I16, I32, I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
FLOAT = ir.FloatType()


class _BFloat16(ir.Type):
    """LLVM's type bfloat, which llvmlite does not define."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other) -> bool:
        return isinstance(other, _BFloat16)

    def __hash__(self) -> int:
        return hash(_BFloat16)


_BFLOAT16 = _BFloat16()

# Polynomial for 2^f, |f| <= 1/2, constant term first; relative error 1e-4 (bfloat16's is 2e-3).
_EXP2 = (0.9999280729, 0.6932609864, 0.2426111328, 0.0551716688)
_ROUND = 1.5 * 2.0**23  # adding and subtracting it rounds to the nearest integer


def vector(kind: ir.Type, n: int = LANES) -> ir.VectorType:
    """The type of a vector of n numbers."""
    return ir.VectorType(kind, n)


def has_pair_dot() -> bool:
    """Whether this processor multiplies pairs of bfloat16 in one instruction."""
    return bool(llvm.get_host_cpu_features().get("avx512bf16", False))


class Code(ir.IRBuilder):
    """Builder for one function of (parameters, first, one past the last, scratch), all integers.

    The first argument is the address of integers, which `parameters` names; their values are in
    `told`. `first` and `last` bound the problems to compute. native: whether `pair_dot` uses the
    processor's own instruction or an emulation.
    """

    def __init__(self, name: str, parameters: tuple[str, ...], native: bool):
        self.whole_module = ir.Module(name)
        kind = ir.FunctionType(ir.VoidType(), [I64] * 4)
        function = ir.Function(self.whole_module, kind, name)
        self.entry = function.append_basic_block("entry")
        super().__init__(function.append_basic_block("start"))
        # Variables are placed in `entry`, which ends in a jump to `start`.
        ir.IRBuilder(self.entry).branch(self.block)
        self.native = native
        told, self.first, self.last, self.scratch = function.args
        self.told = {key: self.get(I64, self.at(told, i, 8)) for i, key in enumerate(parameters)}

    # Numbers and memory.

    def number(self, value: int) -> ir.Constant:
        """A 64-bit integer constant."""
        return ir.Constant(I64, value)

    def at(self, base, index, scale: int):
        """base + index * scale, as an address."""
        if isinstance(index, int):
            return self.add(base, self.number(index * scale))
        return self.add(base, self.mul(index, self.number(scale)))

    def get(self, kind: ir.Type, address, align: int = 2):
        """Load a value of type `kind` from an address."""
        return self.load(self.inttoptr(address, kind.as_pointer()), align=align)

    def put(self, value, address, align: int = 2) -> None:
        """Store a value at an address."""
        self.store(value, self.inttoptr(address, value.type.as_pointer()), align=align)

    def floats(self, base, index: int = 0):
        """The `index`th block of 64 bytes from an aligned base, as float32 in every lane."""
        return self.get(vector(FLOAT), self.at(base, index, 64), 64)

    def variable(self, initial):
        """Allocate a variable that may change in a loop; LLVM turns it into a register."""
        here = self.block
        self.position_before(self.entry.terminator)
        place = self.alloca(initial.type)
        self.position_at_end(here)
        self.store(initial, place)
        return place

    def ceil(self, n, each: int):
        """n / each, rounded up."""
        return self.udiv(self.add(n, self.number(each - 1)), self.number(each))

    def smaller(self, a, b):
        """The smaller of two integers."""
        return self.select(self.icmp_unsigned("<", a, b), a, b)

    @contextmanager
    def loop(self, count, start=None):
        """Run the body for each index from `start` (default 0) to `count` - 1, at least once."""
        before = self.block
        body = self.append_basic_block("body")
        self.branch(body)
        self.position_at_end(body)
        index = self.phi(I64)
        index.add_incoming(start or self.number(0), before)
        yield index
        following = self.add(index, self.number(1))
        index.add_incoming(following, self.block)
        end = self.append_basic_block("end")
        self.cbranch(self.icmp_unsigned("<", following, count), body, end)
        self.position_at_end(end)

    def prefetch(self, address, to_write: bool) -> None:
        """Prefetch the memory at an address into the cache."""
        place = self.inttoptr(address, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [place.type, I32, I32, I32])
        function = self.module.declare_intrinsic("llvm.prefetch", (place.type,), kind)
        self.call(function, [place, I32(int(to_write)), I32(3), I32(1)])

    def in_order(self) -> None:
        """Memory fence: LLVM moves no read or write of memory across this point."""
        self.fence("seq_cst", "singlethread")

    # Vectors.

    def same(self, value):
        """`value` in every lane."""
        kind = vector(value.type)
        one = self.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
        return self.chosen(one, [0] * LANES)

    def real(self, value: float):
        """A float32 in every lane."""
        return ir.Constant(vector(FLOAT), [value] * LANES)

    def whole(self, value: int, n: int = LANES):
        """An integer of 32 bits in every lane."""
        return ir.Constant(vector(I32, n), [value] * n)

    def chosen(self, x, order: list[int], y=None):
        """Shuffle: the lanes `order` of x, or of x and y concatenated."""
        y = ir.Constant(x.type, ir.Undefined) if y is None else y
        return self.shuffle_vector(x, y, ir.Constant(vector(I32, len(order)), order))

    def across(self, combine, x):
        """Reduce all lanes to one number with `combine`, in a fixed order."""
        n = x.type.count
        while n > 1:
            n //= 2
            x = combine(*(self.chosen(x, list(range(start, start + n))) for start in (0, n)))
        return self.extract_element(x, I32(0))

    def _rotated(self, rows: list) -> list:
        """Permute n vectors of 16 as one list of numbers: rotate each index's bits by one."""
        half = len(rows) // 2
        orders = [
            [part + LANES * side for part in range(start, start + LANES // 2) for side in (0, 1)]
            for start in (0, LANES // 2)
        ]
        return [
            self.chosen(rows[i], order, rows[i + half]) for i in range(half) for order in orders
        ]

    def transposed(self, rows: list) -> list:
        """Transpose 16 vectors of 16."""
        for _ in range(4):
            rows = self._rotated(rows)
        return rows

    def transposed_halves(self, rows: list) -> list:
        """Transpose 16 vectors of 8 to 8 vectors of 16."""
        both = [self.chosen(rows[i], list(range(LANES)), rows[i + 8]) for i in range(8)]
        for _ in range(3):
            both = self._rotated(both)
        halves = [list(range(start, start + 8)) for start in (0, 8)]
        orders = [half + [LANES + i for i in half] for half in halves]
        return [self.chosen(both[i], order, both[i + 4]) for i in range(4) for order in orders]

    # Arithmetic.

    def fma(self, a, b, c):
        """a b + c, rounded once."""
        return self._intrinsic("fma", [a, b, c])

    def root(self, a):
        """The square root."""
        return self._intrinsic("sqrt", [a])

    def largest(self, a, b):
        """The larger of a and b in each lane; b if either is NaN."""
        return self.select(self.fcmp_ordered(">", a, b), a, b)

    def _intrinsic(self, name: str, arguments):
        kind = arguments[0].type
        suffix = f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
        function = self.module.declare_intrinsic(
            f"llvm.{name}.{suffix}", fnty=ir.FunctionType(kind, [kind] * len(arguments))
        )
        return self.call(function, arguments)

    def exp2(self, x):
        """2^x for x up to 127; x below -126 is taken as -126."""
        x = self.largest(self.real(-126.0), x)
        shifted = self.fadd(x, self.real(_ROUND))
        rest = self.fsub(x, self.fsub(shifted, self.real(_ROUND)))
        power = self.real(_EXP2[-1])
        for coefficient in _EXP2[-2::-1]:
            power = self.fma(power, rest, self.real(coefficient))
        exponent = self.shl(self.bitcast(shifted, vector(I32)), self.whole(23))
        return self.bitcast(self.add(self.bitcast(power, vector(I32)), exponent), x.type)

    # bfloat16, whose bits are the upper half of float32's.

    def pair_dot(self, total, a, b):
        """total + a_low b_low + a_high b_high, for [16] pairs of bfloat16 a and b."""
        if self.native:
            function = self.module.declare_intrinsic(
                "llvm.x86.avx512bf16.dpbf16ps.512",
                fnty=ir.FunctionType(total.type, [total.type, a.type, b.type]),
            )
            return self.call(function, [total, a, b])
        for part in (self.low, self.high):
            total = self.fma(part(a), part(b), total)
        return total

    def low(self, pairs):
        """The first of each pair, as float32."""
        kind = vector(FLOAT, pairs.type.count)
        return self.bitcast(self.shl(pairs, self.whole(16, kind.count)), kind)

    def high(self, pairs):
        """The second of each pair, as float32."""
        kind = vector(FLOAT, pairs.type.count)
        return self.bitcast(self.and_(pairs, self.whole(0xFFFF0000, kind.count)), kind)

    def widened(self, address):
        """The bfloat16 at `address` as float32, one in every lane."""
        return self.low(self.zext(self.get(vector(I16), address), vector(I32)))

    def rounded(self, x):
        """Round float32 to the bits of the nearest bfloat16, ties to even; NaN stays NaN."""
        n = x.type.count
        if self.native:
            return self.bitcast(self.fptrunc(x, vector(_BFLOAT16, n)), vector(I16, n))
        bits = self.bitcast(x, vector(I32, n))
        even = self.and_(self.lshr(bits, self.whole(16, n)), self.whole(1, n))
        bits = self.add(self.add(bits, self.whole(0x7FFF, n)), even)
        bits = self.select(self.fcmp_unordered("uno", x, x), self.whole(0x7FC00000, n), bits)
        return self.trunc(self.lshr(bits, self.whole(16, n)), vector(I16, n))

    def half_up(self, x):
        """Round float32 so that the upper 16 bits are bfloat16; the lower 16 are arbitrary."""
        return self.add(self.bitcast(x, vector(I32)), self.whole(0x8000))

    def paired(self, a, b):
        """The bfloat16 of two `half_up` values as pairs: in each lane one of a and one of b."""
        upper = self.and_(b, self.whole(0xFFFF0000))
        return self.or_(self.lshr(a, self.whole(16)), upper)

    def side_by_side(self, a, b):
        """The bfloat16 of two `half_up` values, concatenated: all of a, then all of b, [32]."""
        a, b = (self.bitcast(x, vector(I16, 2 * LANES)) for x in (a, b))
        return self.chosen(a, list(range(1, 4 * LANES, 2)), b)


def compiled(code: Code):
    """Compile the function that `code` holds; calls release the GIL.

    Raises LLVM's errors (such as `RuntimeError`) if it cannot be compiled.
    """
    return finished(code.whole_module, code.whole_module.name, 4)


def finished(module: ir.Module, name: str, arguments: int):
    """Compile the function `name` of a module, with `arguments` integers; calls release the GIL."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)
    function = kind(engine.get_function_address(name))
    # The machine code is freed with its engine, so the function must hold a reference to it.
    function.engine, function.machine = engine, machine  # type: ignore[attr-defined]
    return function
