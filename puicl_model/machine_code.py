"""Machine code for attention in bfloat16, made by LLVM for the processor at hand.

Libraries write all scores of an attention to memory, and their products are slow for heads of 16.
Here scores stay in registers, for 16 keys at a time, one a lane. Every product takes bfloat16 in
pairs and sums in float32: `pair_dot` is one instruction where the processor has AVX512-BF16.

Layouts, for a block of 16 keys and heads of D numbers: "lanes" [D / 2, 16], pairs of numbers of
each key, and "rows" [8, D], pairs of keys for each number. Addresses are plain integers, so LLVM
moves no load out of a loop, where registers would not suffice.
"""

import ctypes
import functools
from contextlib import contextmanager

import llvmlite.binding as llvm
from llvmlite import ir

LANES = 16
ASK_TOGETHER = 4  # queries that share each load of keys, forward
GRADIENT_TOGETHER = 8  # and backward

# exp of scores within these bounds needs no row maximum.
SAFE_SCORE = 60.0

# What a call is told, each an integer; strides and addresses in bytes. Keys and values lie alike,
# and so do the result and its gradient.
PARAMETERS = (
    *("q", "k", "v", "out", "stats", "dout", "dq", "dk", "dv"),
    *("n1", "n2", "asking", "length"),
    *("q0", "q1", "q2", "q_row", "k0", "k1", "k2", "k_row", "o0", "o1", "o2", "o_row"),
)

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLOAT = ir.FloatType()
_LOG2_E = 1.4426950408889634
# 2^f for |f| <= 1/2, from the constant up; relative error 4e-6, where bfloat16's is 2e-3.
_EXP2 = (1.0000000716, 0.6931440730, 0.2402130738, 0.0559107174, 0.0096700470)
_ROUND = 1.5 * 2.0**23  # added and taken off again, it leaves the nearest integer


def _vector(kind: ir.Type, n: int) -> ir.VectorType:
    return ir.VectorType(kind, n)


def has_pair_dot() -> bool:
    """Whether this processor multiplies pairs of bfloat16 in one instruction."""
    return bool(llvm.get_host_cpu_features().get("avx512bf16", False))


class _Code(ir.IRBuilder):
    """A builder with the few words the two functions are written in."""

    def __init__(self, block: ir.Block, native: bool):
        super().__init__(block)
        self.native = native
        self.entry = block

    def number(self, value: int) -> ir.Constant:
        return ir.Constant(_I64, value)

    def at(self, base, index, scale: int):
        """base + index * scale, as an address."""
        if isinstance(index, int):
            return self.add(base, self.number(index * scale))
        return self.add(base, self.mul(index, self.number(scale)))

    def get(self, kind: ir.Type, address, align: int = 2):
        return self.load(self.inttoptr(address, kind.as_pointer()), align=align)

    def put(self, value, address, align: int = 2) -> None:
        self.store(value, self.inttoptr(address, value.type.as_pointer()), align=align)

    def same(self, value, n: int = LANES):
        """`value` in every lane."""
        kind = _vector(value.type, n)
        one = self.insert_element(ir.Constant(kind, ir.Undefined), value, _I32(0))
        zeros = ir.Constant(_vector(_I32, n), [0] * n)
        return self.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

    def real(self, value: float, n: int = LANES):
        return ir.Constant(_vector(_FLOAT, n), [value] * n)

    def whole(self, value: int, n: int = LANES):
        return ir.Constant(_vector(_I32, n), [value] * n)

    def variable(self, initial):
        """A place for a value that changes in a loop; LLVM makes a register of it."""
        with self.goto_block(self.entry):
            place = self.alloca(initial.type)
        self.store(initial, place)
        return place

    def fma(self, a, b, c):
        return self._intrinsic("fma", [a, b, c])

    def largest(self, a, b):
        """Lane by lane the larger; a NaN in b stays."""
        return self.select(self.fcmp_ordered(">", a, b), a, b)

    def _intrinsic(self, name: str, arguments):
        kind = arguments[0].type
        suffix = f"v{kind.count}f32" if isinstance(kind, ir.VectorType) else "f32"
        function = self.module.declare_intrinsic(
            f"llvm.{name}.{suffix}", fnty=ir.FunctionType(kind, [kind] * len(arguments))
        )
        return self.call(function, arguments)

    @contextmanager
    def loop(self, count, start=None):
        """The body runs for each index from `start` (0) up to `count`, at least once."""
        before = self.block
        body = self.append_basic_block("body")
        self.branch(body)
        self.position_at_end(body)
        index = self.phi(_I64)
        index.add_incoming(start or self.number(0), before)
        yield index
        following = self.add(index, self.number(1))
        index.add_incoming(following, self.block)
        end = self.append_basic_block("end")
        self.cbranch(self.icmp_unsigned("<", following, count), body, end)
        self.position_at_end(end)

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
        kind = _vector(_FLOAT, pairs.type.count)
        return self.bitcast(self.shl(pairs, self.whole(16, kind.count)), kind)

    def high(self, pairs):
        kind = _vector(_FLOAT, pairs.type.count)
        return self.bitcast(self.and_(pairs, self.whole(0xFFFF0000, kind.count)), kind)

    def widened(self, address, n: int):
        """n bfloat16 as float32."""
        numbers = self.zext(self.get(_vector(_I16, n), address), _vector(_I32, n))
        return self.low(numbers)

    def rounded(self, x):
        """float32 to the bits of the nearest bfloat16, ties to even."""
        n = x.type.count
        bits = self.bitcast(x, _vector(_I32, n))
        even = self.and_(self.lshr(bits, self.whole(16, n)), self.whole(1, n))
        bits = self.add(self.add(bits, self.whole(0x7FFF, n)), even)
        return self.trunc(self.lshr(bits, self.whole(16, n)), _vector(_I16, n))

    def half_up(self, x):
        """float32 with the upper half of its bits rounded to bfloat16; the lower is anything."""
        return self.add(self.bitcast(x, _vector(_I32, LANES)), self.whole(0x8000))

    def exp2(self, x):
        """2^x for x up to 127; what is below 2^-126 becomes that."""
        x = self.largest(self.real(-126.0), x)
        shifted = self.fadd(x, self.real(_ROUND))
        rest = self.fsub(x, self.fsub(shifted, self.real(_ROUND)))
        power = self.real(_EXP2[-1])
        for coefficient in _EXP2[-2::-1]:
            power = self.fma(power, rest, self.real(coefficient))
        integers = _vector(_I32, LANES)
        exponent = self.shl(self.bitcast(shifted, integers), self.whole(23))
        return self.bitcast(self.add(self.bitcast(power, integers), exponent), x.type)

    def across(self, combine, x):
        """All lanes combined, in a fixed order."""
        n = x.type.count
        while n > 1:
            n //= 2
            halves = [
                self.shuffle_vector(
                    x,
                    ir.Constant(x.type, ir.Undefined),
                    ir.Constant(_vector(_I32, n), list(range(start, start + n))),
                )
                for start in (0, n)
            ]
            x = combine(*halves)
        return self.extract_element(x, _I32(0))

    def transposed(self, rows: list) -> list:
        """16 vectors of 16, the other way round: four times a perfect shuffle."""
        orders = [
            [part + LANES * side for part in range(start, start + LANES // 2) for side in (0, 1)]
            for start in (0, LANES // 2)
        ]
        orders = [ir.Constant(_vector(_I32, LANES), order) for order in orders]
        for _ in range(4):
            rows = [
                self.shuffle_vector(rows[i], rows[i + LANES // 2], order)
                for i in range(LANES // 2)
                for order in orders
            ]
        return rows

    def smaller(self, a, b):
        return self.select(self.icmp_unsigned("<", a, b), a, b)

    def row(self, kind, base, stride, row, count):
        """Row `row` of `count` in memory, beyond them the last: its weights are made zero."""
        last = self.sub(count, self.number(1))
        return self.get(kind, self.add(base, self.mul(self.smaller(row, last), stride)))

    def pack_lanes(self, size, base, stride, block, count, to) -> None:
        """Rows of a block to the layout "lanes"."""
        first = self.mul(block, self.number(LANES))
        for start in range(0, size // 2, LANES):
            n = min(LANES, size // 2 - start)
            rows = []
            for lane in range(LANES):
                row = self.add(first, self.number(lane))
                values = self.row(_vector(_I32, n), self.at(base, start, 4), stride, row, count)
                if n < LANES:
                    order = [min(i, n - 1) for i in range(LANES)]
                    values = self.shuffle_vector(
                        values,
                        ir.Constant(values.type, ir.Undefined),
                        ir.Constant(_vector(_I32, LANES), order),
                    )
                rows.append(values)
            for i, lanes in enumerate(self.transposed(rows)[:n]):
                self.put(lanes, self.at(to, start + i, 64), align=64)

    def pack_rows(self, size, base, stride, block, count, to, rows: int = LANES) -> None:
        """`rows` rows of a block to the layout "rows"."""
        first = self.mul(block, self.number(rows))
        kind = _vector(_I32, LANES)
        for pair in range(rows // 2):
            for start in range(0, size, LANES):
                both = [
                    self.row(
                        _vector(_I16, LANES),
                        self.at(base, start, 2),
                        stride,
                        self.add(first, self.number(2 * pair + side)),
                        count,
                    )
                    for side in (0, 1)
                ]
                both = [self.zext(values, kind) for values in both]
                pairs = self.or_(both[0], self.shl(both[1], self.whole(16)))
                self.put(pairs, self.at(to, pair * size + start, 4), align=64)

    def products(self, size, n, lanes, row_of) -> list:
        """For n rows their products with a block's keys: row_of(i) is where row i's D lie."""
        totals = [self.real(0.0)] * n
        for pair in range(size // 2):
            keys = self.get(_vector(_I32, LANES), self.at(lanes, pair, 64), align=64)
            for i in range(n):
                row = self.same(self.get(_I32, self.at(row_of(i), pair, 4)))
                totals[i] = self.pair_dot(totals[i], keys, row)
        return totals

    def valid(self, block, length):
        """Which lanes of a block are keys."""
        lane = ir.Constant(_vector(_I32, LANES), list(range(LANES)))
        left = self.trunc(self.sub(length, self.mul(block, self.number(LANES))), _I32)
        return self.icmp_unsigned("<", lane, self.same(left))


def _begin(name: str, native: bool):
    """A module with a function of (parameters, first problem, one past the last, scratch)."""
    module = ir.Module(name)
    kind = ir.FunctionType(ir.VoidType(), [_I64] * 4)
    function = ir.Function(module, kind, name)
    entry = function.append_basic_block("entry")
    start = function.append_basic_block("start")
    code = _Code(start, native)
    code.entry = entry
    # Variables are placed in `entry`, which ends in a jump to `start`.
    ir.IRBuilder(entry).branch(start)
    code.goto_block = lambda block: _before_end(code, block)
    told, first, last, scratch = function.args
    values = {key: code.get(_I64, code.at(told, i, 8), 8) for i, key in enumerate(PARAMETERS)}
    return module, code, values, first, last, scratch


@contextmanager
def _before_end(code: _Code, block: ir.Block):
    here = code.block
    code.position_before(block.terminator)
    yield
    code.position_at_end(here)


def _problem(code: _Code, told: dict, number, letter: str):
    """Offset in bytes of problem `number` in the arrays whose strides begin with `letter`."""
    i2 = code.urem(number, told["n2"])
    rest = code.udiv(number, told["n2"])
    i1, i0 = code.urem(rest, told["n1"]), code.udiv(rest, told["n1"])
    offset = code.number(0)
    for index, key in ((i0, "0"), (i1, "1"), (i2, "2")):
        offset = code.add(offset, code.mul(index, told[letter + key]))
    return offset


def _ceil(code: _Code, n, each: int):
    return code.udiv(code.add(n, code.number(each - 1)), code.number(each))


def _forward(size: int, native: bool) -> ir.Module:
    """out and stats (shift in units of log 2, 1 / sum) of each query."""
    module, code, told, first, last, scratch = _begin("forward", native)
    vectors = size // LANES
    length, asking = told["length"], told["asking"]
    blocks = _ceil(code, length, LANES)
    room = size * 32  # bytes of a packed block
    weights = scratch  # [4, 16] bfloat16
    lanes = code.at(scratch, 1, 64 * ASK_TOGETHER)
    pairs = code.at(lanes, blocks, room)
    safe = ir.Constant(_FLOAT, SAFE_SCORE**2)
    with code.loop(last, first) as number:
        q, k, v, out = (
            code.add(told[key], _problem(code, told, number, letter))
            for key, letter in (("q", "q"), ("k", "k"), ("v", "k"), ("out", "o"))
        )
        stats = code.add(told["stats"], code.mul(code.mul(number, asking), code.number(8)))
        longest = code.variable(code.real(0.0))
        with code.loop(blocks) as block:
            here = code.at(lanes, block, room)
            code.pack_lanes(size, k, told["k_row"], block, length, here)
            code.pack_rows(size, v, told["k_row"], block, length, code.at(pairs, block, room))
            squares = code.real(0.0)
            for pair in range(size // 2):
                some = code.get(_vector(_I32, LANES), code.at(here, pair, 64), 64)
                squares = code.pair_dot(squares, some, some)
            code.store(code.largest(code.load(longest), squares), longest)
        longest_key = code.across(code.largest, code.load(longest))
        with code.loop(_ceil(code, asking, ASK_TOGETHER)) as group:
            numbers = [
                code.add(code.mul(group, code.number(ASK_TOGETHER)), code.number(i))
                for i in range(ASK_TOGETHER)
            ]
            end = code.sub(asking, code.number(1))
            rows = [code.add(q, code.mul(code.smaller(i, end), told["q_row"])) for i in numbers]
            bound = ir.Constant(_FLOAT, 0.0)
            for row in rows:
                squares = code.real(0.0)
                for part in range(vectors):
                    some = code.widened(code.at(row, part, 32), LANES)
                    squares = code.fma(some, some, squares)
                bound = code.largest(code.across(code.fadd, squares), bound)
            shifts = [code.variable(ir.Constant(_FLOAT, 0.0)) for _ in rows]
            unsafe = code.not_(code.fcmp_ordered("<", code.fmul(bound, longest_key), safe))
            with code.if_then(unsafe, likely=False):
                tops = [code.variable(code.real(-3e38)) for _ in rows]
                with code.loop(blocks) as block:
                    here = code.at(lanes, block, room)
                    inside = code.valid(block, length)
                    scores = code.products(size, ASK_TOGETHER, here, lambda i: rows[i])
                    for top, score in zip(tops, scores, strict=True):
                        score = code.select(inside, score, code.real(-3e38))
                        code.store(code.largest(code.load(top), score), top)
                for top, shift in zip(tops, shifts, strict=True):
                    highest = code.across(code.largest, code.load(top))
                    code.store(code.fmul(highest, ir.Constant(_FLOAT, -_LOG2_E)), shift)
            minus = [code.same(code.load(shift)) for shift in shifts]
            sums = [code.variable(code.real(0.0)) for _ in rows]
            taken = [[code.variable(code.real(0.0)) for _ in range(vectors)] for _ in rows]
            with code.loop(blocks) as block:
                inside = code.valid(block, length)
                scores = code.products(
                    size, ASK_TOGETHER, code.at(lanes, block, room), lambda i: rows[i]
                )
                for i, score in enumerate(scores):
                    weight = code.exp2(code.fma(score, code.real(_LOG2_E), minus[i]))
                    weight = code.select(inside, weight, code.real(0.0))
                    bits = code.half_up(weight)
                    # The sum is of what is multiplied, so that the weights add up to one.
                    code.store(code.fadd(code.load(sums[i]), code.high(bits)), sums[i])
                    half = code.lshr(bits, code.whole(16))
                    code.put(code.trunc(half, _vector(_I16, LANES)), code.at(weights, i, 32), 32)
                values = code.at(pairs, block, room)
                for pair in range(LANES // 2):
                    for part in range(vectors):
                        some = code.get(
                            _vector(_I32, LANES), code.at(values, pair * size + part * 16, 4), 64
                        )
                        for i, totals in enumerate(taken):
                            weight = code.get(_I32, code.at(weights, 8 * i + pair, 4), 4)
                            total = code.load(totals[part])
                            total = code.pair_dot(total, some, code.same(weight))
                            code.store(total, totals[part])
            for i, row in enumerate(numbers):
                inverse = code.across(code.fadd, code.load(sums[i]))
                inverse = code.fdiv(ir.Constant(_FLOAT, 1.0), inverse)
                with code.if_then(code.icmp_unsigned("<", row, asking)):
                    to = code.add(out, code.mul(row, told["o_row"]))
                    for part, total in enumerate(taken[i]):
                        result = code.fmul(code.load(total), code.same(inverse))
                        code.put(code.rounded(result), code.at(to, part, 32))
                    code.put(code.load(shifts[i]), code.at(stats, row, 8), 4)
                    code.put(inverse, code.add(code.at(stats, row, 8), code.number(4)), 4)
    code.ret_void()
    return module


def forward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch `forward` needs."""
    return 64 * ASK_TOGETHER + 2 * -(-length // LANES) * size * 32


def _backward(size: int, native: bool) -> ir.Module:
    """dq, dk and dv; the weights are computed again from the stats."""
    module, code, told, first, last, scratch = _begin("backward", native)
    vectors = size // LANES
    together = GRADIENT_TOGETHER
    length, asking = told["length"], told["asking"]
    blocks, groups = _ceil(code, length, LANES), _ceil(code, asking, together)
    room = size * 32
    kept = scratch  # [8, 16] bfloat16: gradients of scores
    dk_sum = code.at(scratch, 1, 32 * together)  # [D, 16] float32
    dv_sum = code.at(dk_sum, size, 64)
    k_lanes = code.at(dv_sum, size, 64)
    v_lanes = code.at(k_lanes, blocks, room)
    k_pairs = code.at(v_lanes, blocks, room)
    # Each group of 8 queries: q and dO [8, D] bfloat16, their pairs [4, D], dq [8, D] float32, and
    # of each query shift, 1 / sum and sum(dO * O).
    q_rows = code.at(k_pairs, blocks, room)
    o_rows = code.at(q_rows, groups, together * size * 2)
    q_pairs = code.at(o_rows, groups, together * size * 2)
    o_pairs = code.at(q_pairs, groups, together * size * 2)
    dq_sum = code.at(o_pairs, groups, together * size * 2)
    notes = code.at(dq_sum, groups, together * size * 4)
    half = _vector(_I16, LANES)
    with code.loop(last, first) as number:
        q, k, v, out, dout, dq, dk, dv = (
            code.add(told[key], _problem(code, told, number, letter))
            for key, letter in zip(
                ("q", "k", "v", "out", "dout", "dq", "dk", "dv"), "qkkooqkk", strict=True
            )
        )
        stats = code.add(told["stats"], code.mul(code.mul(number, asking), code.number(8)))
        with code.loop(blocks) as block:
            code.pack_lanes(size, k, told["k_row"], block, length, code.at(k_lanes, block, room))
            code.pack_lanes(size, v, told["k_row"], block, length, code.at(v_lanes, block, room))
            code.pack_rows(size, k, told["k_row"], block, length, code.at(k_pairs, block, room))
        with code.loop(groups) as group:
            bytes_ = together * size * 2
            for source, stride, to_rows, to_pairs in (
                (q, "q_row", q_rows, q_pairs),
                (dout, "o_row", o_rows, o_pairs),
            ):
                to = code.at(to_pairs, group, bytes_)
                code.pack_rows(size, source, told[stride], group, asking, to, together)
                for i in range(together):
                    row = code.add(code.mul(group, code.number(together)), code.number(i))
                    for part in range(vectors):
                        values = code.row(
                            half, code.at(source, part, 32), told[stride], row, asking
                        )
                        to = code.at(code.at(to_rows, group, bytes_), i * size + part * 16, 2)
                        code.put(values, to, 32)
            for i in range(together):
                row = code.add(code.mul(group, code.number(together)), code.number(i))
                products = code.real(0.0)
                for part in range(vectors):
                    code.put(
                        code.real(0.0),
                        code.at(code.at(dq_sum, row, size * 4), part, 64),
                        64,
                    )
                    taken, gradient = (
                        code.row(half, code.at(x, part, 32), told["o_row"], row, asking)
                        for x in (out, dout)
                    )
                    wide = [code.low(code.zext(x, _vector(_I32, LANES))) for x in (taken, gradient)]
                    products = code.fma(*wide, products)
                last_row = code.sub(asking, code.number(1))
                stat = code.at(stats, code.smaller(row, last_row), 8)
                note = code.at(notes, row, 12)
                code.put(code.get(_FLOAT, stat, 4), note, 4)
                inverse = code.get(_FLOAT, code.add(stat, code.number(4)), 4)
                asks = code.icmp_unsigned("<", row, asking)
                inverse = code.select(asks, inverse, ir.Constant(_FLOAT, 0.0))
                code.put(inverse, code.add(note, code.number(4)), 4)
                delta = code.across(code.fadd, products)
                code.put(delta, code.add(note, code.number(8)), 4)
        with code.loop(blocks) as block:
            inside = code.valid(block, length)
            for sums in (dk_sum, dv_sum):
                for i in range(size):
                    code.put(code.real(0.0), code.at(sums, i, 64), 64)
            with code.loop(groups) as group:
                rows = [
                    code.at(x, group, together * size * 2)
                    for x in (q_rows, o_rows, q_pairs, o_pairs)
                ]
                q_row, o_row, q_pair, o_pair = rows
                note = code.at(notes, group, 12 * together)
                scores = code.products(
                    size,
                    together,
                    code.at(k_lanes, block, room),
                    lambda i: code.at(q_row, i, 2 * size),
                )
                weights = []
                for i, score in enumerate(scores):
                    shift, inverse = (
                        code.same(code.get(_FLOAT, code.at(note, 3 * i + j, 4), 4)) for j in (0, 1)
                    )
                    weight = code.exp2(code.fma(score, code.real(_LOG2_E), shift))
                    weight = code.fmul(weight, inverse)
                    weights.append(code.select(inside, weight, code.real(0.0)))
                # Pairs of queries, one a half of a lane.
                _add_outer(code, size, _query_pairs(code, weights), o_pair, dv_sum)
                d_weights = code.products(
                    size,
                    together,
                    code.at(v_lanes, block, room),
                    lambda i: code.at(o_row, i, 2 * size),
                )
                d_scores = []
                for i, (weight, slope) in enumerate(zip(weights, d_weights, strict=True)):
                    delta = code.same(code.get(_FLOAT, code.at(note, 3 * i + 2, 4), 4))
                    score = code.fmul(weight, code.fsub(slope, delta))
                    d_scores.append(score)
                    bits = code.lshr(code.half_up(score), code.whole(16))
                    code.put(code.trunc(bits, half), code.at(kept, i, 32), 32)
                _add_outer(code, size, _query_pairs(code, d_scores), q_pair, dk_sum)
                keys = code.at(k_pairs, block, room)
                to = code.at(dq_sum, group, together * size * 4)
                for part in range(vectors):
                    places = [code.at(to, i * size + part * 16, 4) for i in range(together)]
                    totals = [code.get(_vector(_FLOAT, LANES), place, 64) for place in places]
                    for pair in range(LANES // 2):
                        some = code.get(
                            _vector(_I32, LANES), code.at(keys, pair * size + part * 16, 4), 64
                        )
                        for i in range(together):
                            slope = code.get(_I32, code.at(kept, 8 * i + pair, 4), 4)
                            totals[i] = code.pair_dot(totals[i], some, code.same(slope))
                    for total, place in zip(totals, places, strict=True):
                        code.put(total, place, 64)
            for sums, to in ((dk_sum, dk), (dv_sum, dv)):
                for part in range(vectors):
                    columns = [
                        code.get(_vector(_FLOAT, LANES), code.at(sums, part * 16 + i, 64), 64)
                        for i in range(LANES)
                    ]
                    for lane, values in enumerate(code.transposed(columns)):
                        row = code.add(code.mul(block, code.number(LANES)), code.number(lane))
                        with code.if_then(code.icmp_unsigned("<", row, length)):
                            place = code.add(to, code.mul(row, told["k_row"]))
                            code.put(code.rounded(values), code.at(place, part, 32))
        with code.loop(asking) as row:
            for part in range(vectors):
                place = code.at(code.at(dq_sum, row, size * 4), part, 64)
                values = code.get(_vector(_FLOAT, LANES), place, 64)
                to = code.add(dq, code.mul(row, told["q_row"]))
                code.put(code.rounded(values), code.at(to, part, 32))
    code.ret_void()
    return module


def _query_pairs(code: _Code, values: list) -> list:
    """Lane by lane the values of two queries, as pairs of bfloat16."""
    rounded = [code.half_up(value) for value in values]
    return [
        code.or_(
            code.lshr(rounded[i], code.whole(16)),
            code.and_(rounded[i + 1], code.whole(0xFFFF0000)),
        )
        for i in range(0, len(rounded), 2)
    ]


def _add_outer(code: _Code, size: int, pairs: list, rows, sums) -> None:
    """sums [D, 16] += each query's number [D] times its value for each key, queries in pairs."""
    for i in range(size):
        total = code.get(_vector(_FLOAT, LANES), code.at(sums, i, 64), 64)
        for j, pair in enumerate(pairs):
            number = code.get(_I32, code.at(rows, j * size + i, 4), 4)
            total = code.pair_dot(total, pair, code.same(number))
        code.put(total, code.at(sums, i, 64), 64)


def backward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch `backward` needs."""
    queries = -(-asking // GRADIENT_TOGETHER) * GRADIENT_TOGETHER
    keys = 32 * GRADIENT_TOGETHER + 2 * size * 64 + 3 * -(-length // LANES) * size * 32
    return keys + queries * (size * 12 + 12)


@functools.cache
def compiled(name: str, size: int, native: bool = True):
    """The function `forward` or `backward` for heads of `size`, callable without the GIL.

    Raises what LLVM raises where it cannot make it.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(
        str({"forward": _forward, "backward": _backward}[name](size, native))
    )
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)
    function = kind(engine.get_function_address(name))
    function.engine = engine  # the code lives as long as its engine
    function.machine = machine
    return function
