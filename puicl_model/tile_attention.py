"""Attention in bfloat16 on tiles, and its gradient: `attention_code` for processors with AMX.

Scores of 32 keys with 16 queries in lanes are written from the tiles to a buffer in the L1 cache,
turned into weights with vector instructions, and loaded into a tile for the next product. Computing
the weights takes most of the time, so the next block's scores are started before them.
"""

import functools

from llvmlite import ir

from puicl_model.attention_code import SAFE_SCORE
from puicl_model.machine_code import FLOAT, LANES, compiled, vector
from puicl_model.tile_code import SETTINGS_BYTES, TILE_BYTES, TileCode, has_tiles

KEYS = 2 * LANES  # keys that a product sums over
QUERIES = 2 * LANES  # queries that a product sums over, in the gradient

_WAITING = 2  # double buffering of scores: one is read while the next is written


def _forward(size: int, native: bool) -> TileCode:
    """Write `out`, and `stats` of each group of 16 queries, as in `attention_code`."""
    code = TileCode("forward", size, native)
    told = code.told
    scores, rows_of_keys = 4, 5
    queries = (6, 7)[: code.steps]
    weights_tile = 4
    values = 5 if size == 64 else 7
    code.begin_tiles((rows_of_keys,) if size < 64 else (), queries if size < 64 else ())
    room = KEYS * size * 2  # bytes of a block of keys
    q_lanes = code.scratch
    sums = code.at(q_lanes, size // 2, 64)  # [D, 16] float32
    buffers = code.at(sums, size, 64)  # twice [32 keys, 16 queries] float32
    weights = code.at(buffers, _WAITING * 2, TILE_BYTES)  # [16 pairs of keys, 16 queries]
    k_rows = code.at(weights, 1, TILE_BYTES)
    blocks = code.ceil(code.length, KEYS)
    # One extra block, because scores are computed one block ahead; the last ones are not used.
    v_columns = code.at(k_rows, code.add(blocks, code.number(1)), room)  # a block [D, 32]
    absent = code.at(v_columns, blocks, room)
    code.mark_absent(absent, code.mul(blocks, code.number(KEYS)))

    def ask(block) -> None:
        """Compute the scores of a block into its buffer."""
        buffer = code.at(buffers, code.and_(block, code.number(1)), 2 * TILE_BYTES)
        for half in range(2):
            code.zero_tile(scores)
            for step in range(code.steps):
                place = code.at(code.at(k_rows, block, room), half, room // 2)
                code.load_tile(rows_of_keys, code.at(place, step, 64), 2 * size)
                code.multiply(scores, rows_of_keys, queries[step])
            code.store_tile(scores, code.at(buffer, half, TILE_BYTES), 64)

    with code.loop(code.last, code.first) as number:
        at = code.problem(number)
        longest = code.variable(code.real(0.0))
        with code.loop(code.mul(blocks, code.number(2))) as half:
            first = code.mul(half, code.number(LANES))
            _pack_half(code, at["k"], half, code.at(k_rows, half, room // 2))
            squares = code.squares(code.in_lanes(at["k"], told["k_row"], first, code.length))
            code.store(code.largest(code.load(longest), squares), longest)
            lanes = code.in_lanes(at["v"], told["k_row"], first, code.length)
            code.pack_columns(lanes, _half_of_block(code, v_columns, half, room))
        longest = code.across(code.largest, code.load(longest))
        with code.loop(code.groups) as group:
            first = code.mul(group, code.number(LANES))
            lanes = code.in_lanes(at["q"], told["q_row"], first, code.asking, at["bias"])
            code.keep(lanes, q_lanes)
            bound = code.fmul(code.across(code.largest, code.squares(lanes)), longest)
            code.in_order()
            for step, tile in enumerate(queries):
                code.load_tile(tile, code.at(q_lanes, step, TILE_BYTES), 64)
            shift = code.variable(code.real(0.0))
            unsafe = code.not_(code.fcmp_ordered("<", bound, ir.Constant(FLOAT, SAFE_SCORE**2)))
            with code.if_then(unsafe, likely=False):
                top = code.variable(code.real(-3e38))
                with code.loop(blocks) as block:
                    ask(block)
                    buffer = code.at(buffers, code.and_(block, code.number(1)), 2 * TILE_BYTES)
                    for i in range(KEYS):
                        score = code.fadd(
                            code.floats(buffer, i), code.absence(absent, block, i, KEYS)
                        )
                        code.store(code.largest(code.load(top), score), top)
                code.store(code.fsub(code.real(0.0), code.load(top)), shift)
            minus = code.load(shift)
            total = code.variable(code.real(0.0))
            for part in code.parts:
                code.zero_tile(part)
            ask(code.number(0))
            with code.loop(blocks) as block:
                ask(code.add(block, code.number(1)))
                buffer = code.at(buffers, code.and_(block, code.number(1)), 2 * TILE_BYTES)
                for i in range(0, KEYS, 2):
                    both = []
                    for j in (i, i + 1):
                        score = code.fadd(code.floats(buffer, j), minus)
                        score = code.fadd(score, code.absence(absent, block, j, KEYS))
                        both.append(code.half_up(code.exp2(score)))
                        # Sum the rounded weights that are multiplied, so that they add up to one.
                        code.store(code.fadd(code.load(total), code.high(both[-1])), total)
                    code.put(code.paired(*both), code.at(weights, i // 2, 64), 64)
                code.load_tile(weights_tile, weights, 64)
                for part in code.parts:
                    place = code.at(code.at(v_columns, block, room), part, TILE_BYTES)
                    code.load_tile(values, place, 64)
                    code.multiply(part, values, weights_tile)
            for part in code.parts:
                code.store_tile(part, code.at(sums, part, TILE_BYTES), 64)
            inverse = code.fdiv(code.real(1.0), code.load(total))
            code.write_columns(sums, inverse, group, at["out"], told["o_row"])
            stats = code.at(at["stats"], group, 2 * 64)
            code.put(minus, stats, 4)
            code.put(inverse, code.at(stats, 1, 64), 4)
    code.end_tiles()
    code.ret_void()
    return code


def forward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch memory that `forward` needs."""
    blocks = -(-length // KEYS)
    fixed = SETTINGS_BYTES + size * 96 + (2 * _WAITING + 1) * TILE_BYTES
    return fixed + KEYS * (2 * size * (2 * blocks + 1) + 4 * blocks)


def _backward(size: int, native: bool) -> TileCode:
    """Write dq, dk, dv and dbias; the weights are recomputed from the stats."""
    code = TileCode("backward", size, native)
    told = code.told
    room = KEYS * size * 2  # bytes of a block of keys, or of 32 queries
    some = size * 32  # bytes of a group of 16 queries
    of_keys, asked_tiles = ((2, 3), (4, 5, 6, 7)) if size == 64 else ((2,), (3, 4))
    code.begin_tiles(of_keys if size < 64 else (), asked_tiles if size < 64 else ())
    left, right = ((4, 5), 6) if size == 64 else ((5, 6), 7)
    blocks = code.ceil(code.length, KEYS)
    crowds = code.ceil(code.asking, QUERIES)
    groups = code.mul(crowds, code.number(2))
    buffers = code.scratch  # [2 groups, 32 keys, 16 queries] float32 of scores
    gains = code.at(buffers, 4, TILE_BYTES)  # the same of dO v^T
    weights = code.at(gains, 4, TILE_BYTES)  # [32 keys, 32 queries] bfloat16
    slopes = code.at(weights, 2, TILE_BYTES)  # gradients of the scores
    slope_pairs = code.at(slopes, 2, TILE_BYTES)  # [2 groups, 16 pairs of keys, 16 queries]
    k_rows = code.at(slope_pairs, 2, TILE_BYTES)
    v_rows = code.at(k_rows, blocks, room)
    k_columns = code.at(v_rows, blocks, room)  # a block [D, 32]
    dk_sums = code.at(k_columns, blocks, room)  # [keys, D] float32
    dv_sums = code.at(dk_sums, blocks, 2 * room)
    q_lanes = code.at(dv_sums, blocks, 2 * room)
    o_lanes = code.at(q_lanes, groups, some)
    q_pairs = code.at(o_lanes, groups, some)
    o_pairs = code.at(q_pairs, crowds, room)
    dq_sums = code.at(o_pairs, crowds, room)  # [D, 16] float32 per group
    deltas = code.at(dq_sums, groups, 2 * some)  # sum(dO * O) of each query
    absent = code.at(deltas, groups, 64)
    code.mark_absent(absent, code.mul(blocks, code.number(KEYS)))
    with code.loop(code.last, code.first) as number:
        at = code.problem(number)
        with code.loop(code.mul(blocks, code.number(2))) as half:
            first = code.mul(half, code.number(LANES))
            _pack_half(code, at["k"], half, code.at(k_rows, half, room // 2))
            _pack_half(code, at["v"], half, code.at(v_rows, half, room // 2))
            lanes = code.in_lanes(at["k"], told["k_row"], first, code.length)
            code.pack_columns(lanes, _half_of_block(code, k_columns, half, room))
            for sums in (dk_sums, dv_sums):
                code.keep([code.real(0.0)] * size, code.at(sums, half, room))
        with code.loop(groups) as group:
            asked = (code.mul(group, code.number(LANES)), code.asking)
            lanes = code.in_lanes(at["q"], told["q_row"], *asked, at["bias"])
            code.keep(lanes, code.at(q_lanes, group, some))
            slope = code.in_lanes(at["dout"], told["o_row"], *asked)
            code.keep(slope, code.at(o_lanes, group, some))
            # Zeros, so that queries beyond the last contribute nothing to any key.
            to = code.at(q_pairs, group, some)
            code.pack_pairs(at["q"], told["q_row"], *asked, to, LANES, at["bias"], zeros=True)
            to = code.at(o_pairs, group, some)
            code.pack_pairs(at["dout"], told["o_row"], *asked, to, LANES, zeros=True)
            delta = code.real(0.0)
            for a, b in zip(slope, code.in_lanes(at["out"], told["o_row"], *asked), strict=True):
                delta = code.pair_dot(delta, a, b)
            code.put(delta, code.at(deltas, group, 64), 64)
            code.keep([code.real(0.0)] * size, code.at(dq_sums, group, 2 * some))
        code.in_order()
        with code.loop(crowds) as crowd:
            both = [code.add(code.mul(crowd, code.number(2)), code.number(g)) for g in range(2)]
            minus: list[ir.Value] = []
            inverse: list[ir.Value] = []
            for group in both:
                # For a group beyond the last, read the last one's stats and zero its weights.
                there = code.icmp_unsigned("<", group, code.groups)
                known = code.smaller(group, code.sub(code.groups, code.number(1)))
                stats = code.at(at["stats"], known, 2 * 64)
                for i, (found, none) in enumerate(((minus, -1e30), (inverse, 0.0))):
                    values = code.get(vector(FLOAT), code.at(stats, i, 64), 4)
                    found.append(code.select(there, values, code.real(none)))
            delta = [code.floats(code.at(deltas, group, 64)) for group in both]
            with code.loop(blocks) as block:
                for rows, lanes, to in ((k_rows, q_lanes, buffers), (v_rows, o_lanes, gains)):
                    for g in range(2):
                        for step in range(code.steps):
                            place = code.at(code.at(lanes, both[g], some), step, TILE_BYTES)
                            code.load_tile(asked_tiles[g * code.steps + step], place, 64)
                    for half in range(2):
                        place = code.at(code.at(rows, block, room), half, room // 2)
                        for step in range(code.steps):
                            code.load_tile(of_keys[step], code.at(place, step, 64), 2 * size)
                        for g in range(2):
                            code.zero_tile(g)
                            for step in range(code.steps):
                                asks = asked_tiles[g * code.steps + step]
                                code.multiply(g, of_keys[step], asks)
                            code.store_tile(g, code.at(to, 2 * g + half, TILE_BYTES), 64)
                waiting = [None, None]
                for i in range(KEYS):
                    rows = []
                    for g in range(2):
                        score = code.fadd(code.floats(buffers, g * KEYS + i), minus[g])
                        score = code.fadd(score, code.absence(absent, block, i, KEYS))
                        weight = code.fmul(code.exp2(score), inverse[g])
                        gain = code.fsub(code.floats(gains, g * KEYS + i), delta[g])
                        slope = code.half_up(code.fmul(weight, gain))
                        rows.append((code.half_up(weight), slope))
                        if i % 2:
                            to = code.at(slope_pairs, g * LANES + i // 2, 64)
                            code.put(code.paired(waiting[g], slope), to, 64)
                        waiting[g] = slope
                    for to, one, other in zip((weights, slopes), *rows, strict=True):
                        code.put(code.side_by_side(one, other), code.at(to, i, 64), 64)
                for factors, pairs, sums in (
                    (weights, o_pairs, dv_sums),
                    (slopes, q_pairs, dk_sums),
                ):
                    for half in range(2):
                        code.load_tile(left[half], code.at(factors, half, TILE_BYTES), 64)
                    for part in code.parts:
                        place = code.at(code.at(pairs, crowd, room), part, 64)
                        code.load_tile(right, place, 4 * size)
                        for half in range(2):
                            to = code.at(code.at(sums, block, 2 * room), half, room)
                            to = code.at(to, part, 64)
                            code.add_product(half, left[half], right, to, 4 * size)
                for g in range(2):
                    code.load_tile(left[g], code.at(slope_pairs, g, TILE_BYTES), 64)
                for part in code.parts:
                    place = code.at(code.at(k_columns, block, room), part, TILE_BYTES)
                    code.load_tile(right, place, 64)
                    for g in range(2):
                        to = code.at(code.at(dq_sums, both[g], 2 * some), part, TILE_BYTES)
                        code.add_product(g, right, left[g], to, 64)
        code.write_gradients(at, dq_sums, dk_sums, dv_sums)
    code.end_tiles()
    code.ret_void()
    return code


def backward_scratch(size: int, asking: int, length: int) -> int:
    """Bytes of scratch memory that `backward` needs."""
    keys, queries = -(-length // KEYS) * KEYS, -(-asking // QUERIES) * QUERIES
    fixed = SETTINGS_BYTES + 14 * TILE_BYTES
    return fixed + keys * (14 * size + 4) + queries * (12 * size + 4)


def _pack_half(code: TileCode, base, half, to) -> None:
    """Copy the rows of 16 keys to consecutive memory."""
    for i in range(2):
        block = code.add(code.mul(half, code.number(2)), code.number(i))
        code.pack_rows(base, code.told["k_row"], block, code.at(to, i, 8 * 2 * code.size))


def _half_of_block(code: TileCode, columns, half, room: int):
    """Address of the 16 keys number `half` in blocks [D, 32] of 32 keys each."""
    block = code.at(columns, code.lshr(half, code.number(1)), room)
    return code.at(block, code.and_(half, code.number(1)), 32)


@functools.cache
def function(name: str, size: int, native: bool = True):
    """The compiled function `forward` or `backward` for heads of `size`; raises as `compiled`.

    Native code first requests the tiles from the system; raises `RuntimeError` if there are none.
    """
    if native and not has_tiles():
        raise RuntimeError("this processor or system provides no tiles")
    return compiled({"forward": _forward, "backward": _backward}[name](size, native))
