"""Machine code for attention in bfloat16, and for its gradient.

Libraries write all attention scores to memory, and their products are slow for heads of size 16.
Here scores stay in registers: those of 16 queries, one per lane, with 8 keys at a time. Each number
of a key is broadcast from memory as it is multiplied, so that run time is bound by the processor's
products of bfloat16 pairs.
"""

import functools

from llvmlite import ir

from puicl_model.attention_parts import KEYS, AttentionCode
from puicl_model.machine_code import FLOAT, LANES, Code, compiled, vector

# Head size times number of key blocks that stay in the L1 cache while looping over the queries.
TOGETHER = 128

# For scores within +-SAFE_SCORE, weights 2^score need no subtraction of the row maximum.
SAFE_SCORE = 86.0


def _forward(size: int, native: bool) -> Code:
    """Write `out`, and `stats` of each group of 16 queries: score shifts [16], 1 / sums [16]."""
    code = AttentionCode("forward", size, native)
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
            squares = code.squares(code.in_lanes(at["k"], told["k_row"], first, code.length))
            code.store(code.largest(code.load(longest), squares), longest)
        longest = code.across(code.largest, code.load(longest))
        with code.loop(code.groups) as group:
            first = code.mul(group, code.number(LANES))
            lanes = code.in_lanes(at["q"], told["q_row"], first, code.asking, at["bias"])
            code.keep(lanes, q_lanes)
            code.keep([code.real(0.0)] * size, sums)
            bound = code.fmul(code.across(code.largest, code.squares(lanes)), longest)
            shift = code.variable(code.real(0.0))
            unsafe = code.not_(code.fcmp_ordered("<", bound, ir.Constant(FLOAT, SAFE_SCORE**2)))
            with code.if_then(unsafe, likely=False):
                top = code.variable(code.real(-3e38))
                with code.loop(code.key_blocks) as block:
                    for i, score in enumerate(code.products(q_lanes, code.at(k_rows, block, room))):
                        score = code.fadd(score, code.absence(absent, block, i))
                        code.store(code.largest(code.load(top), score), top)
                code.store(code.fsub(code.real(0.0), code.load(top)), shift)
            minus = code.load(shift)
            total = code.variable(code.real(0.0))
            scores = [code.variable(score) for score in code.products(q_lanes, k_rows)]
            with code.loop(code.key_blocks) as block:
                weights: list[ir.Value] = []

                def weigh(i: int, block=block, weights=weights):
                    score = code.fadd(code.load(scores[i]), minus)
                    score = code.fadd(score, code.absence(absent, block, i))
                    weights.append(code.half_up(code.exp2(score)))
                    # Sum the rounded weights that are multiplied, so that they add up to one.
                    code.store(code.fadd(code.load(total), code.high(weights[-1])), total)

                # Scores of the next block. After the last block these are of other data, unused.
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


def forward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch memory that `forward` needs."""
    blocks = -(-length // KEYS)
    return size * 96 + blocks * KEYS * (4 * size + 4)


def _backward(size: int, native: bool) -> Code:
    """Write dq, dk, dv and dbias; the weights are recomputed from the stats."""
    code = AttentionCode("backward", size, native)
    told = code.told
    room = KEYS * size * 2  # bytes of a block of keys
    some = size * 32  # bytes of a group of 16 queries
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
    dq_sums = code.at(o_pairs, code.groups, some)  # [D, 16] float32 per group
    deltas = code.at(dq_sums, code.groups, 2 * some)  # sum(dO * O) of each query
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
                    found: list[ir.Value] = []

                    def weigh(i: int, block=block, found=found):
                        score = code.fadd(code.load(scores[i]), minus)
                        score = code.fadd(score, code.absence(absent, block, i))
                        found.append(code.fmul(code.exp2(score), inverse))

                    slope = code.at(o_lanes, group, some)
                    gains = code.products(slope, code.at(v_rows, block, room), weigh)
                    code.in_order()
                    bits: list[ir.Value] = []

                    def slope_of(i: int, found=found, gains=gains, bits=bits):
                        bits.append(code.half_up(found[i]))
                        slope = code.fmul(found[i], code.fsub(gains[i], delta))
                        bits.append(code.half_up(slope))
                        if i % 2:
                            for to, j in ((weights, 0), (slopes, 1)):
                                both = code.side_by_side(bits[2 * i - 2 + j], bits[2 * i + j])
                                code.put(both, code.at(to, i - 1, 2 * LANES), 64)

                    # Scores of the next block. After the last block these are of unused data.
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
        code.write_gradients(at, dq_sums, dk_sums, dv_sums)
    code.ret_void()
    return code


def backward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch memory that `backward` needs."""
    keys, queries = -(-length // KEYS) * KEYS, -(-asking // LANES) * LANES
    return 64 * KEYS + keys * (14 * size + 4) + queries * (12 * size + 4)


@functools.cache
def function(name: str, size: int, native: bool = True):
    """The compiled function `forward` or `backward` for heads of `size`; raises as `compiled`."""
    return compiled({"forward": _forward, "backward": _backward}[name](size, native))
