"""Building blocks of the attention's machine code: layouts, packing, products, sums.

Layouts for heads of D numbers: "lanes" [D / 2, 16], pairs of adjacent numbers of each of 16
queries; "rows" [D], the original layout; and "pairs" [rows / 2, D], where each number of a row is
paired with the same number of the next row. Sums are float32. Weights are powers of two: the caller
must multiply scores by log2(e).
"""

import math

from llvmlite import ir

from puicl_model.machine_code import FLOAT, I16, I32, LANES, Code, vector

KEYS = 8  # keys held in registers together

# Integer parameters of a call; strides and addresses are in bytes. Keys and values have the same
# strides, and so have the result and its gradient. bias: float32 [heads, D], added to the queries;
# dbias: [problems, D], each problem's contribution to the gradient of bias.
PARAMETERS = (
    *("q", "k", "v", "bias", "out", "stats", "dout", "dq", "dk", "dv", "dbias"),
    *("n1", "n2", "asking", "length"),
    *("q0", "q1", "q2", "q_row", "k0", "k1", "k2", "k_row", "o0", "o1", "o2", "o_row"),
)

# For each array, the letter of the strides that it uses.
_STRIDES = {"q": "q", "dq": "q", "k": "k", "v": "k", "dk": "k", "dv": "k", "out": "o", "dout": "o"}


class AttentionCode(Code):
    """Builder for the forward and backward functions, for heads of `size`."""

    def __init__(self, name: str, size: int, native: bool):
        super().__init__(name, PARAMETERS, native)
        self.size = size
        self.parts = range(size // LANES)
        self.length, self.asking = self.told["length"], self.told["asking"]
        self.key_blocks, self.groups = self.ceil(self.length, KEYS), self.ceil(self.asking, LANES)

    def problem(self, number) -> dict:
        """Start addresses of the arrays of problem `number`."""
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
        """Address of row `row` of `count`; beyond the last, the last's, whose weight is zeroed."""
        last = self.sub(count, self.number(1))
        return self.add(base, self.mul(self.smaller(row, last), stride))

    def biased(self, row, bias, part: int):
        """16 numbers of a query plus its bias, as bfloat16 bits."""
        values = self.widened(self.at(row, part, 32))
        return self.rounded(self.fadd(values, self.get(vector(FLOAT), self.at(bias, part, 64), 4)))

    def in_lanes(self, base, stride, first, count, bias=None) -> list:
        """16 rows in the layout "lanes": [D / 2] vectors of pairs, with one row per lane."""
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
        """Write the vectors consecutively to address `to`."""
        for i, values in enumerate(vectors):
            self.put(values, self.at(to, i, 64), 64)

    def pack_rows(self, base, stride, block, to) -> None:
        """Copy the rows of a block of keys to consecutive memory."""
        for i in range(KEYS):
            number = self.add(self.mul(block, self.number(KEYS)), self.number(i))
            row = self.row(base, stride, number, self.length)
            for part in self.parts:
                values = self.get(vector(I16), self.at(row, part, 32))
                self.put(values, self.at(to, i * self.size + part * LANES, 2), 32)

    def pack_pairs(self, base, stride, first, count, to, rows: int, bias=None, zeros=False) -> None:
        """Write `rows` rows in the layout "pairs"; zeros: whether rows beyond the last are zero."""
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
        """Prefetch the rows of the problem after next; the next one's are adjacent in memory."""
        at = self.problem(self.add(number, self.number(2)))
        for names, count in (("q dq dout out", self.asking), ("k v dk dv", self.length)):
            asked = [name for name in names.split() if name in (read + " " + written).split()]
            with self.loop(count) as row:
                for name in asked:
                    stride = self.told[f"{_STRIDES[name]}_row"]
                    place = self.add(at[name], self.mul(row, stride))
                    self.prefetch(place, to_write=name in written.split())

    def mark_absent(self, to, keys=None) -> None:
        """Write what to add to the scores of each key: 0, or -1e30 for padding beyond the last key.

        keys: how many to write; by default, all keys of whole blocks.
        """
        if keys is None:
            keys = self.mul(self.key_blocks, self.number(KEYS))
        with self.loop(keys) as key:
            there = self.icmp_unsigned("<", key, self.length)
            amount = self.select(there, ir.Constant(FLOAT, 0.0), ir.Constant(FLOAT, -1e30))
            self.put(amount, self.at(to, key, 4), 4)

    def products(self, lanes, rows, meanwhile=lambda i: None) -> list:
        """Dot products of each of 8 rows with 16 queries in lanes.

        `meanwhile` emits 8 pieces of other work in between, which the processor runs in parallel.
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
        """sums [D, 16] += weights of 16 queries, in `pairs` along the rows, times these `rows`."""
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
        """sums [8, D] += `numbers` [8 keys, 16 queries] times the queries' rows in `pairs`."""
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
        """Write sums [D, 16], times a factor per lane and rounded, as rows of a group of queries.

        total: [D], to which the unrounded rows are added.
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

    def write_sums(self, sums, factor, to) -> None:
        """Write sums [keys, D], times a factor and rounded, as the keys' or values' gradient."""
        with self.loop(self.length) as key:
            row = self.add(to, self.mul(key, self.told["k_row"]))
            for part in self.parts:
                values = self.floats(self.at(sums, key, self.size * 4), part)
                self.put(self.rounded(self.fmul(values, factor)), self.at(row, part, 32))

    def write_gradients(self, at: dict, dq_sums, dk_sums, dv_sums) -> None:
        """Write a problem's sums as the gradients of queries, their bias, keys and values.

        dq_sums: [D, 16] per group of queries; dk_sums and dv_sums: [keys, D].
        """
        # Weights are powers of two: d(2^s)/ds = log(2) 2^s.
        natural = self.real(math.log(2))
        self.keep([self.real(0.0)] * len(self.parts), at["dbias"])
        with self.loop(self.groups) as group:
            sums = self.at(dq_sums, group, self.size * 64)
            self.write_columns(sums, natural, group, at["dq"], self.told["q_row"], at["dbias"])
        self.write_sums(dk_sums, natural, at["dk"])
        self.write_sums(dv_sums, self.real(1.0), at["dv"])

    def squares(self, lanes: list):
        """Sum of squares in each lane."""
        total = self.real(0.0)
        for pairs in lanes:
            total = self.pair_dot(total, pairs, pairs)
        return total

    def absence(self, absent, block, i: int, keys: int = KEYS):
        """The value that `mark_absent` wrote for key `i` of a block of `keys`, in all lanes."""
        return self.same(self.get(FLOAT, self.at(self.at(absent, block, keys * 4), i, 4), 4))
