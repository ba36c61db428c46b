"""Machine code for attention in bfloat16, and for its gradient.

Libraries write all scores of an attention to memory, and their products are slow for heads of 16.
Here scores stay in registers: those of 16 queries, one a lane, with 8 keys at a time. Every number
of a key is broadcast from memory as it is multiplied, so the processor's pairwise products are
what takes the time.

Layouts, for heads of D numbers: "lanes" [D / 2, 16], pairs of numbers of each of 16 queries;
"rows" [D], as they come; and "pairs" [rows / 2, D], where each number of a row has the next row's
beside it. Sums are float32. Weights are powers of two: the factor log2(e) is the caller's.
"""

import functools
import math

from llvmlite import ir

from puicl_model.machine_code import FLOAT, I16, I32, LANES, Code, compiled, vector

KEYS = 8  # that are in registers together

# Numbers of a head times blocks of keys that stay in the first cache while the queries pass.
TOGETHER = 128

# Weights 2^score for scores within these bounds need no row maximum.
SAFE_SCORE = 86.0

# What a call is told, each an integer; strides and addresses in bytes. Keys and values lie alike,
# and so do the result and its gradient. bias: float32 [heads, D], what is added to the queries;
# dbias: its gradient's share of each problem, [problems, D].
PARAMETERS = (
    *("q", "k", "v", "bias", "out", "stats", "dout", "dq", "dk", "dv", "dbias"),
    *("n1", "n2", "asking", "length"),
    *("q0", "q1", "q2", "q_row", "k0", "k1", "k2", "k_row", "o0", "o1", "o2", "o_row"),
)

# Whose strides each of them has.
_STRIDES = {"q": "q", "dq": "q", "k": "k", "v": "k", "dk": "k", "dv": "k", "out": "o", "dout": "o"}


class _Attention(Code):
    """What both functions are written in, for heads of `size`."""

    def __init__(self, name: str, size: int, native: bool):
        super().__init__(name, PARAMETERS, native)
        self.size = size
        self.parts = range(size // LANES)
        self.length, self.asking = self.told["length"], self.told["asking"]
        self.key_blocks, self.groups = self.ceil(self.length, KEYS), self.ceil(self.asking, LANES)

    def problem(self, number) -> dict:
        """Addresses of problem `number`: where each of its arrays begins."""
        told = self.told
        i2, rest = self.urem(number, told["n2"]), self.udiv(number, told["n2"])
        places = (self.udiv(rest, told["n1"]), self.urem(rest, told["n1"]), i2)
        found = {}
        for key, letter in _STRIDES.items():
            found[key] = told[key]
            for axis, place in enumerate(places):
                found[key] = self.add(found[key], self.mul(place, told[f"{letter}{axis}"]))
        found["bias"] = self.at(told["bias"], i2, self.size * 4)
        found["dbias"] = self.at(told["dbias"], number, self.size * 4)
        found["stats"] = self.at(told["stats"], self.mul(number, self.groups), 8 * LANES)
        return found

    def row(self, base, stride, row, count):
        """Where row `row` of `count` lies, beyond them the last: what it weighs is made zero."""
        last = self.sub(count, self.number(1))
        return self.add(base, self.mul(self.smaller(row, last), stride))

    def biased(self, row, bias, part: int):
        """16 numbers of a query, its bias added, as the bits of bfloat16."""
        values = self.widened(self.at(row, part, 32))
        return self.rounded(self.fadd(values, self.get(vector(FLOAT), self.at(bias, part, 64), 4)))

    def in_lanes(self, base, stride, first, count, bias=None) -> list:
        """The pairs of numbers of 16 rows, [D / 2] vectors with a row a lane."""
        places = [
            self.row(base, stride, self.add(first, self.number(lane)), count)
            for lane in range(LANES)
        ]

        def pairs(place, start: int, n: int):
            if bias is None:
                return self.get(vector(I32, n), self.at(place, start, 4))
            some = [self.biased(place, bias, start // 8 + i) for i in range(n // 8)]
            some = some[0] if n == 8 else self.chosen(some[0], list(range(2 * LANES)), some[1])
            return self.bitcast(some, vector(I32, n))

        if self.size == LANES:
            return self.transposed_halves([pairs(place, 0, 8) for place in places])
        found = []
        for start in range(0, self.size // 2, LANES):
            found += self.transposed([pairs(place, start, LANES) for place in places])
        return found

    def keep(self, vectors: list, to) -> None:
        for i, values in enumerate(vectors):
            self.put(values, self.at(to, i, 64), 64)

    def pack_rows(self, base, stride, block, to) -> None:
        """The rows of a block of keys side by side."""
        for i in range(KEYS):
            number = self.add(self.mul(block, self.number(KEYS)), self.number(i))
            row = self.row(base, stride, number, self.length)
            for part in self.parts:
                values = self.get(vector(I16), self.at(row, part, 32))
                self.put(values, self.at(to, i * self.size + part * LANES, 2), 32)

    def pack_pairs(self, base, stride, first, count, to, rows: int, bias=None, zeros=False) -> None:
        """`rows` rows to the layout "pairs"; zeros: beyond the last."""
        for pair in range(rows // 2):
            numbers = [self.add(first, self.number(2 * pair + side)) for side in (0, 1)]
            places = [self.row(base, stride, number, count) for number in numbers]
            for part in self.parts:
                both = []
                for place, number in zip(places, numbers, strict=True):
                    if bias is None:
                        values = self.get(vector(I16), self.at(place, part, 32))
                    else:
                        values = self.biased(place, bias, part)
                    if zeros:
                        nothing = ir.Constant(vector(I16), [0] * LANES)
                        there = self.icmp_unsigned("<", number, count)
                        values = self.select(there, values, nothing)
                    both.append(self.zext(values, vector(I32)))
                pairs = self.or_(both[0], self.shl(both[1], self.whole(16)))
                self.put(pairs, self.at(to, pair * self.size + part * LANES, 4), 64)

    def fetch_ahead(self, number, read: str, written: str) -> None:
        """Bring rows of the problem after next into the cache; those of the next lie beside."""
        at = self.problem(self.add(number, self.number(2)))
        for names, count in (("q dq dout out", self.asking), ("k v dk dv", self.length)):
            names = [name for name in names.split() if name in (read + " " + written).split()]
            with self.loop(count) as row:
                for name in names:
                    stride = self.told[f"{_STRIDES[name]}_row"]
                    place = self.add(at[name], self.mul(row, stride))
                    self.prefetch(place, to_write=name in written.split())

    def mark_absent(self, to) -> None:
        """What is added to the scores with each key: beyond the last, what leaves no weight."""
        with self.loop(self.mul(self.key_blocks, self.number(KEYS))) as key:
            there = self.icmp_unsigned("<", key, self.length)
            amount = self.select(there, ir.Constant(FLOAT, 0.0), ir.Constant(FLOAT, -1e30))
            self.put(amount, self.at(to, key, 4), 4)

    def products(self, lanes, rows, meanwhile=lambda i: None) -> list:
        """For each of 8 rows its products with 16 queries in lanes.

        `meanwhile` writes 8 pieces of other work in between, which the processor then does beside.
        """
        totals = [self.real(0.0)] * KEYS
        steps = self.size // 2
        for pair in range(steps):
            queries = self.get(vector(I32), self.at(lanes, pair, 64), 64)
            for i in range(KEYS):
                number = self.same(self.get(I32, self.at(rows, i * self.size + 2 * pair, 2)))
                totals[i] = self.pair_dot(totals[i], queries, number)
            if (pair + 1) % (steps // KEYS) == 0:
                meanwhile((pair + 1) // (steps // KEYS) - 1)
        return totals

    def add_columns(self, pairs: list, rows, sums) -> None:
        """sums [D, 16] += the 16 queries' `pairs` of numbers, one a pair of rows, times these."""
        for start in range(0, self.size, LANES):
            places = [self.at(sums, start + i, 64) for i in range(LANES)]
            totals = [self.floats(place) for place in places]
            for i, pair in enumerate(pairs):
                for j in range(LANES):
                    number = self.get(I32, self.at(rows, i * self.size + start + j, 4))
                    totals[j] = self.pair_dot(totals[j], pair, self.same(number))
            for total, place in zip(totals, places, strict=True):
                self.put(total, place, 64)

    def add_rows(self, numbers, pairs, sums) -> None:
        """sums [8, D] += for each of 8 keys the 16 queries' `numbers` times their rows in pairs."""
        for part in self.parts:
            places = [self.at(sums, i * self.size + part * LANES, 4) for i in range(KEYS)]
            totals = [self.floats(place) for place in places]
            for pair in range(LANES // 2):
                row = self.get(vector(I32), self.at(pairs, pair * self.size + part * LANES, 4), 64)
                for i in range(KEYS):
                    number = self.get(I32, self.at(numbers, i * LANES // 2 + pair, 4))
                    totals[i] = self.pair_dot(totals[i], row, self.same(number))
            for total, place in zip(totals, places, strict=True):
                self.put(total, place, 64)

    def write_columns(self, sums, factor, group, base, stride, total=None) -> None:
        """sums [D, 16] times a factor a lane, rounded, as the rows of a group of queries.

        total: [D] to which the rows are added.
        """
        first = self.mul(group, self.number(LANES))
        for part in self.parts:
            columns = [self.fmul(self.floats(sums, part * LANES + i), factor) for i in range(LANES)]
            added = None if total is None else self.variable(self.floats(total, part))
            for lane, values in enumerate(self.transposed(columns)):
                row = self.add(first, self.number(lane))
                with self.if_then(self.icmp_unsigned("<", row, self.asking)):
                    place = self.add(base, self.mul(row, stride))
                    self.put(self.rounded(values), self.at(place, part, 32))
                    if added is not None:
                        self.store(self.fadd(self.load(added), values), added)
            if added is not None:
                self.put(self.load(added), self.at(total, part, 64), 64)


def _forward(size: int, native: bool) -> Code:
    """out, and stats of each group of 16 queries: shifts of the scores [16], 1 / sums [16]."""
    code = _Attention("forward", size, native)
    told = code.told
    room = KEYS * size * 2  # bytes of a block of keys
    q_lanes = code.scratch
    sums = code.at(q_lanes, size // 2, 64)  # [D, 16] float32
    k_rows = code.at(sums, size, 64)
    v_pairs = code.at(k_rows, code.key_blocks, room)
    absent = code.at(v_pairs, code.key_blocks, room)
    code.mark_absent(absent)
    with code.loop(code.last, code.first) as number:
        at = code.problem(number)
        code.fetch_ahead(number, read="q k v", written="out")
        with code.loop(code.key_blocks) as block:
            first = code.mul(block, code.number(KEYS))
            code.pack_rows(at["k"], told["k_row"], block, code.at(k_rows, block, room))
            to = code.at(v_pairs, block, room)
            code.pack_pairs(at["v"], told["k_row"], first, code.length, to, KEYS)
        longest = code.variable(code.real(0.0))
        with code.loop(code.ceil(code.length, LANES)) as block:
            first = code.mul(block, code.number(LANES))
            squares = _squares(code, code.in_lanes(at["k"], told["k_row"], first, code.length))
            code.store(code.largest(code.load(longest), squares), longest)
        longest = code.across(code.largest, code.load(longest))
        with code.loop(code.groups) as group:
            first = code.mul(group, code.number(LANES))
            lanes = code.in_lanes(at["q"], told["q_row"], first, code.asking, at["bias"])
            code.keep(lanes, q_lanes)
            code.keep([code.real(0.0)] * size, sums)
            bound = code.fmul(code.across(code.largest, _squares(code, lanes)), longest)
            shift = code.variable(code.real(0.0))
            unsafe = code.not_(code.fcmp_ordered("<", bound, ir.Constant(FLOAT, SAFE_SCORE**2)))
            with code.if_then(unsafe, likely=False):
                top = code.variable(code.real(-3e38))
                with code.loop(code.key_blocks) as block:
                    for i, score in enumerate(code.products(q_lanes, code.at(k_rows, block, room))):
                        score = code.fadd(score, _absence(code, absent, block, i))
                        code.store(code.largest(code.load(top), score), top)
                code.store(code.fsub(code.real(0.0), code.load(top)), shift)
            minus = code.load(shift)
            total = code.variable(code.real(0.0))
            scores = [code.variable(score) for score in code.products(q_lanes, k_rows)]
            with code.loop(code.key_blocks) as block:
                weights = []

                def weigh(i: int, block=block, weights=weights):
                    score = code.fadd(code.load(scores[i]), minus)
                    score = code.fadd(score, _absence(code, absent, block, i))
                    weights.append(code.half_up(code.exp2(score)))
                    # The sum is of what is multiplied, so that the weights add up to one.
                    code.store(code.fadd(code.load(total), code.high(weights[-1])), total)

                # The next block's scores; beyond the last block's are others that nobody reads.
                rows = code.at(code.at(k_rows, block, room), 1, room)
                for score, place in zip(code.products(q_lanes, rows, weigh), scores, strict=True):
                    code.store(score, place)
                pairs = [code.paired(*weights[i : i + 2]) for i in range(0, KEYS, 2)]
                code.add_columns(pairs, code.at(v_pairs, block, room), sums)
            inverse = code.fdiv(code.real(1.0), code.load(total))
            code.write_columns(sums, inverse, group, at["out"], told["o_row"])
            stats = code.at(at["stats"], group, 2 * 64)
            code.put(minus, stats, 4)
            code.put(inverse, code.at(stats, 1, 64), 4)
    code.ret_void()
    return code


def _squares(code: Code, lanes: list):
    """Lane by lane the sum of squares."""
    total = code.real(0.0)
    for pairs in lanes:
        total = code.pair_dot(total, pairs, pairs)
    return total


def _absence(code: Code, absent, block, i: int):
    return code.same(code.get(FLOAT, code.at(code.at(absent, block, KEYS * 4), i, 4), 4))


def forward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch `forward` needs."""
    blocks = -(-length // KEYS)
    return size * 96 + blocks * KEYS * (4 * size + 4)


def _backward(size: int, native: bool) -> Code:
    """dq, dk and dv; the weights are computed again from the stats."""
    code = _Attention("backward", size, native)
    told = code.told
    room = KEYS * size * 2  # bytes of a block of keys
    some = size * 32  # bytes of a group of queries, 16
    weights = code.scratch  # [8, 16] bfloat16
    slopes = code.at(weights, KEYS, 32)  # gradients of the scores
    k_rows = code.at(slopes, KEYS, 32)
    v_rows = code.at(k_rows, code.key_blocks, room)
    k_pairs = code.at(v_rows, code.key_blocks, room)
    dk_sums = code.at(k_pairs, code.key_blocks, room)  # [keys, D] float32
    dv_sums = code.at(dk_sums, code.key_blocks, 2 * room)
    q_lanes = code.at(dv_sums, code.key_blocks, 2 * room)
    o_lanes = code.at(q_lanes, code.groups, some)
    q_pairs = code.at(o_lanes, code.groups, some)
    o_pairs = code.at(q_pairs, code.groups, some)
    dq_sums = code.at(o_pairs, code.groups, some)  # of a group [D, 16] float32
    deltas = code.at(dq_sums, code.groups, 2 * some)  # of each query sum(dO * O)
    absent = code.at(deltas, code.groups, 64)
    code.mark_absent(absent)
    together = max(1, TOGETHER // size)
    with code.loop(code.last, code.first) as number:
        at = code.problem(number)
        code.fetch_ahead(number, read="q k v out dout", written="dq dk dv")
        with code.loop(code.key_blocks) as block:
            first = code.mul(block, code.number(KEYS))
            code.pack_rows(at["k"], told["k_row"], block, code.at(k_rows, block, room))
            code.pack_rows(at["v"], told["k_row"], block, code.at(v_rows, block, room))
            to = code.at(k_pairs, block, room)
            code.pack_pairs(at["k"], told["k_row"], first, code.length, to, KEYS)
            for sums in (dk_sums, dv_sums):
                code.keep([code.real(0.0)] * (size // 2), code.at(sums, block, 2 * room))
        with code.loop(code.groups) as group:
            first = code.mul(group, code.number(LANES))
            lanes = code.in_lanes(at["q"], told["q_row"], first, code.asking, at["bias"])
            code.keep(lanes, code.at(q_lanes, group, some))
            to = code.at(q_pairs, group, some)
            asked = (first, code.asking)
            code.pack_pairs(at["q"], told["q_row"], *asked, to, LANES, at["bias"], zeros=True)
            slope = code.in_lanes(at["dout"], told["o_row"], *asked)
            code.keep(slope, code.at(o_lanes, group, some))
            to = code.at(o_pairs, group, some)
            code.pack_pairs(at["dout"], told["o_row"], *asked, to, LANES, zeros=True)
            delta = code.real(0.0)
            for a, b in zip(slope, code.in_lanes(at["out"], told["o_row"], *asked), strict=True):
                delta = code.pair_dot(delta, a, b)
            code.put(delta, code.at(deltas, group, 64), 64)
            code.keep([code.real(0.0)] * size, code.at(dq_sums, group, 2 * some))
        with code.loop(code.ceil(code.key_blocks, together)) as chunk:
            start = code.mul(chunk, code.number(together))
            end = code.smaller(code.add(start, code.number(together)), code.key_blocks)
            with code.loop(code.groups) as group:
                stats = code.at(at["stats"], group, 2 * 64)
                minus, inverse = (code.get(vector(FLOAT), code.at(stats, i, 64), 4) for i in (0, 1))
                delta = code.floats(code.at(deltas, group, 64))
                asks = code.at(q_lanes, group, some)
                scores = [
                    code.variable(score)
                    for score in code.products(asks, code.at(k_rows, start, room))
                ]
                with code.loop(end, start) as block:
                    found = []

                    def weigh(i: int, block=block, found=found):
                        score = code.fadd(code.load(scores[i]), minus)
                        score = code.fadd(score, _absence(code, absent, block, i))
                        found.append(code.fmul(code.exp2(score), inverse))

                    slope = code.at(o_lanes, group, some)
                    gains = code.products(slope, code.at(v_rows, block, room), weigh)
                    code.in_order()
                    bits = []

                    def slope_of(i: int, found=found, gains=gains, bits=bits):
                        bits.append(code.half_up(found[i]))
                        slope = code.fmul(found[i], code.fsub(gains[i], delta))
                        bits.append(code.half_up(slope))
                        if i % 2:
                            for to, j in ((weights, 0), (slopes, 1)):
                                both = code.side_by_side(bits[2 * i - 2 + j], bits[2 * i + j])
                                code.put(both, code.at(to, i - 1, 2 * LANES), 64)

                    # The next block's scores; beyond the last block's are others nobody reads.
                    rows = code.at(code.at(k_rows, block, room), 1, room)
                    following = code.products(asks, rows, slope_of)
                    for score, place in zip(following, scores, strict=True):
                        code.store(score, place)
                    bits = bits[1::2]
                    code.in_order()
                    to = code.at(dv_sums, block, 2 * room)
                    code.add_rows(weights, code.at(o_pairs, group, some), to)
                    to = code.at(dk_sums, block, 2 * room)
                    code.add_rows(slopes, code.at(q_pairs, group, some), to)
                    pairs = [code.paired(*bits[i : i + 2]) for i in range(0, KEYS, 2)]
                    to = code.at(dq_sums, group, 2 * some)
                    code.add_columns(pairs, code.at(k_pairs, block, room), to)
        # The weights are powers of two, whose slope is log 2 times themselves.
        natural = code.real(math.log(2))
        code.keep([code.real(0.0)] * len(code.parts), at["dbias"])
        with code.loop(code.groups) as group:
            from_ = code.at(dq_sums, group, 2 * some)
            code.write_columns(from_, natural, group, at["dq"], told["q_row"], at["dbias"])
        with code.loop(code.length) as key:
            for sums, to, factor in (
                (dk_sums, at["dk"], natural),
                (dv_sums, at["dv"], code.real(1.0)),
            ):
                row = code.add(to, code.mul(key, told["k_row"]))
                for part in code.parts:
                    values = code.floats(code.at(sums, key, size * 4), part)
                    code.put(code.rounded(code.fmul(values, factor)), code.at(row, part, 32))
    code.ret_void()
    return code


def backward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch `backward` needs."""
    keys, queries = -(-length // KEYS) * KEYS, -(-asking // LANES) * LANES
    return 64 * KEYS + keys * (14 * size + 4) + queries * (12 * size + 4)


@functools.cache
def function(name: str, size: int, native: bool = True):
    """The function `forward` or `backward` for heads of `size`; raises what `compiled` does."""
    return compiled({"forward": _forward, "backward": _backward}[name](size, native))
