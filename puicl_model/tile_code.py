"""Matrix products on tiles: registers of 16 rows of 64 bytes on some x86 processors (AMX).

A product accumulates 16 x 16 float32 sums over 32 numbers each: the bfloat16 rows of one tile times
another tile in the layout "pairs" or "lanes" of `attention_parts`.
"""

import ctypes
import functools
import platform

import llvmlite.binding as llvm
from llvmlite import ir

from puicl_model.attention_parts import AttentionCode
from puicl_model.machine_code import I16, I32, LANES, vector

I8 = ir.IntType(8)

TILES = 8
TILE_BYTES = 1024

# Bytes of scratch memory for `begin_tiles`: three settings of 64 bytes, and memory for emulated
# tiles.
SETTINGS_BYTES = 192 + TILES * TILE_BYTES

# Bits of the control register MXCSR that treat and flush denormals (below 2^-126) as zero, as tiles
# do. Absent keys get denormal weights, with which vector arithmetic is far slower.
_NO_TINY_NUMBERS = 0x8040

# Linux grants the registers on request: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
_ARCH_PRCTL, _ASK, _TILE_DATA = 158, 0x1023, 18


@functools.cache
def has_tiles() -> bool:
    """Whether this processor has bfloat16 tiles and the system lets this process use them."""
    features = llvm.get_host_cpu_features()
    if not all(features.get(name, False) for name in ("amx-tile", "amx-bf16", "avx512bf16")):
        return False
    if platform.system() != "Linux":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA) == 0


class TileCode(AttentionCode):
    """Builder for attention code with tiles, for heads of `size`.

    native: whether to use the processor's tiles, or emulate them with memory and vectors.
    """

    def __init__(self, name: str, size: int, native: bool):
        super().__init__(name, size, native)
        # How many of a head's numbers a product sums over, and how many products a head takes.
        self.depth = min(size, 2 * LANES)
        self.steps = size // self.depth
        self.tile_pairs: dict[int, int] = {}
        self._settings = self.scratch
        self.scratch = self.at(self.scratch, 1, SETTINGS_BYTES)

    def begin_tiles(self, of_heads: tuple[int, ...], pairs_of_heads: tuple[int, ...]) -> None:
        """Set the tiles' shapes, which `end_tiles` resets.

        Tiles `of_heads` hold rows of heads, and tiles `pairs_of_heads` hold them in lanes; both are
        partial tiles if heads are small. All other tiles are whole.
        """
        few = self.depth // 2
        self.tile_pairs = dict.fromkeys((*of_heads, *pairs_of_heads), few)
        if not self.native:
            return
        # Save shapes and settings, so that `end_tiles` can restore them for other code in this
        # thread. The tiles' contents are lost, but users of tiles load their own.
        before, now = (self.at(self._settings, 128 + 4 * i, 1) for i in range(2))
        self._call("sse.stmxcsr", self._pointer(before))
        self.put(self.or_(self.get(I32, before, 4), I32(_NO_TINY_NUMBERS)), now, 4)
        self._call("sse.ldmxcsr", self._pointer(now))
        self._call("sttilecfg", self._pointer(self._settings))
        bytes_each = [4 * few if tile in of_heads else 64 for tile in range(TILES)]
        rows = [few if tile in pairs_of_heads else LANES for tile in range(TILES)]
        told = [1, 0, *[0] * 14]
        for each in bytes_each:
            told += [each % 256, each // 256]
        told += [0] * 16 + rows + [0] * 8
        to = self.at(self._settings, 1, 64)
        self.put(ir.Constant(ir.VectorType(I8, 64), told), to, 64)
        self._call("ldtilecfg", self._pointer(to))

    def end_tiles(self) -> None:
        """Restore the shapes and settings that `begin_tiles` found."""
        if self.native:
            self._call("ldtilecfg", self._pointer(self._settings))
            self._call("sse.ldmxcsr", self._pointer(self.at(self._settings, 128, 1)))

    def zero_tile(self, tile: int) -> None:
        """Set all numbers of a tile to zero."""
        if self.native:
            self._call("tilezero", I8(tile))
        else:
            for row in range(LANES):
                self.put(self.whole(0), self._emulated(tile, row), 64)

    def load_tile(self, tile: int, address, stride) -> None:
        """Load a tile from rows `stride` bytes apart."""
        stride = self.number(stride) if isinstance(stride, int) else stride
        if self.native:
            self._call("tileloadd64", I8(tile), self._pointer(address), stride)
            return
        for row in range(LANES):
            from_ = self.add(address, self.mul(stride, self.number(row)))
            self.put(self.get(vector(I32), from_), self._emulated(tile, row), 64)

    def store_tile(self, tile: int, address, stride) -> None:
        """Store a tile to rows `stride` bytes apart."""
        stride = self.number(stride) if isinstance(stride, int) else stride
        if self.native:
            self._call("tilestored64", I8(tile), self._pointer(address), stride)
            return
        for row in range(LANES):
            to = self.add(address, self.mul(stride, self.number(row)))
            self.put(self.get(vector(I32), self._emulated(tile, row), 64), to)

    def multiply(self, sums: int, rows: int, pairs: int) -> None:
        """Tile `sums` += tile `rows` times tile `pairs`."""
        if self.native:
            self._call("tdpbf16ps", I8(sums), I8(rows), I8(pairs))
            return
        with self.loop(self.number(LANES)) as row:
            to = self.at(self._emulated(sums, 0), row, 64)
            total = self.floats(to)
            numbers = self.at(self._emulated(rows, 0), row, 64)
            for pair in range(self.tile_pairs.get(pairs, LANES)):
                number = self.same(self.get(I32, self.at(numbers, pair, 4)))
                values = self.get(vector(I32), self._emulated(pairs, pair), 64)
                total = self.pair_dot(total, values, number)
            self.put(total, to, 64)

    def pack_columns(self, lanes: list, to) -> None:
        """Transpose 16 rows from `in_lanes` to [D, 16] bfloat16, with rows 64 bytes apart."""
        for i, pairs in enumerate(lanes):
            for side, numbers in enumerate((pairs, self.lshr(pairs, self.whole(16)))):
                self.put(self.trunc(numbers, vector(I16)), self.at(to, 2 * i + side, 64), 32)

    def add_product(self, sums: int, rows: int, pairs: int, address, stride) -> None:
        """`multiply` for sums in memory, with rows `stride` bytes apart; `sums` is overwritten."""
        self.load_tile(sums, address, stride)
        self.multiply(sums, rows, pairs)
        self.store_tile(sums, address, stride)

    def _emulated(self, tile: int, row: int):
        return self.at(self._settings, 3 + tile * LANES + row, 64)

    def _pointer(self, address):
        return self.inttoptr(address, I8.as_pointer())

    def _call(self, name: str, *arguments) -> None:
        kind = ir.FunctionType(ir.VoidType(), [x.type for x in arguments])
        function = self.module.globals.get(f"llvm.x86.{name}")
        if function is None:
            function = ir.Function(self.module, kind, f"llvm.x86.{name}")
        self.call(function, arguments)
