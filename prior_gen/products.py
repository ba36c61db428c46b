"""Tall, narrow float32 products x @ weight.T: hundreds of rows, 12 to 36 columns.

BLAS takes about one and a half times as long for these. Here, each element of the product is
((0 + x_1 w_1) + x_2 w_2) + ..., and every step is one fused multiply-add. BLAS computes the same on
processors that have such an instruction, but here the result cannot change with its version.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from prior_gen.jitted import jit

_LANES = 8
_ROWS = 4  # handled together, so that each weight loaded is used four times
_VECTOR = ir.VectorType(ir.FloatType(), _LANES)
_MOST_VECTORS = 5
# Below this number of multiplications, BLAS uses kernels for small matrices, which sum in another
# order. Plans without portable arithmetic keep them, so that their tasks do not change.
_SMALL = 2**16


def multiply_rows(x: np.ndarray, weight: np.ndarray, portable: bool) -> np.ndarray:
    """x [n, k] times the transpose of weight [h, k]: [n, h].

    Without `portable`, BLAS computes small float32 products; with it, float32 products of any size
    have the bits that the module docstring describes. In other dtypes this is numpy's product.
    """
    small = x.size * len(weight) < _SMALL and not portable
    if x.dtype != np.float32 or weight.dtype != np.float32 or small:
        return x @ weight.T
    n, h = len(x), len(weight)
    # Eight columns are stored at once. The end of a row spills into the next row, which is written
    # afterwards; the end of the last row spills into the lanes that are cut off here.
    out = np.empty(n * h + _LANES, np.float32)[: n * h].reshape(n, h)
    _multiply_rows(np.ascontiguousarray(x), np.ascontiguousarray(weight), out)
    return out


def _tile(n_rows: int, n_vectors: int):
    """Compiled code for a tile of `n_rows` rows by 8 * `n_vectors` columns, summed in registers."""

    @intrinsic
    def tile(typing, x, weight, out, row, column):
        def generate(context, builder, signature, arguments):
            x, weight, out = (
                context.make_array(kind)(context, builder, value)
                for kind, value in zip(signature.args[:3], arguments[:3], strict=True)
            )
            row, column = arguments[3:]
            size = row.type
            rows = [builder.add(row, size(r)) for r in range(n_rows)]
            columns = [builder.add(column, size(_LANES * v)) for v in range(n_vectors)]
            zero = ir.Constant(_VECTOR, [0.0] * _LANES)
            unset = ir.Constant(_VECTOR, ir.Undefined)
            lane = ir.IntType(32)
            first_lane = ir.Constant(ir.VectorType(lane, _LANES), [0] * _LANES)
            fma = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fma.v{_LANES}f32"
            )

            def place(array, i, j):
                offset = builder.add(builder.mul(i, builder.extract_value(array.shape, 1)), j)
                return builder.gep(array.data, [offset])

            def eight(pointer):
                return builder.bitcast(pointer, _VECTOR.as_pointer())

            sums = [[cgutils.alloca_once(builder, _VECTOR) for _ in columns] for _ in rows]
            for totals in sums:
                for total in totals:
                    builder.store(zero, total)
            depth = builder.extract_value(x.shape, 1)
            with cgutils.for_range(builder, depth, intp=size) as loop:
                k = loop.index
                weights = [builder.load(eight(place(weight, k, j)), align=4) for j in columns]
                for i, totals in zip(rows, sums, strict=True):
                    value = builder.insert_element(unset, builder.load(place(x, i, k)), lane(0))
                    value = builder.shuffle_vector(value, unset, first_lane)
                    for w, total in zip(weights, totals, strict=True):
                        builder.store(builder.call(fma, [value, w, builder.load(total)]), total)
            for i, totals in zip(rows, sums, strict=True):
                for j, total in zip(columns, totals, strict=True):
                    builder.store(builder.load(total), eight(place(out, i, j)), align=4)
            return context.get_dummy_value()

        return types.void(x, weight, out, row, column), generate

    return tile


_many_1, _many_2, _many_3, _many_4, _many_5 = (_tile(_ROWS, v + 1) for v in range(_MOST_VECTORS))
_one_1, _one_2, _one_3, _one_4, _one_5 = (_tile(1, v + 1) for v in range(_MOST_VECTORS))


@jit
def _multiply_rows(x, weight, out):
    n, k = x.shape
    h = len(weight)
    vectors = -(-h // _LANES)
    transposed = np.zeros((k, vectors * _LANES), np.float32)
    for j in range(h):
        for i in range(k):
            transposed[i, j] = weight[j, i]
    # Start with the last panel, whose spill into the start of the next row the others overwrite.
    for first in range((vectors - 1) // _MOST_VECTORS * _MOST_VECTORS, -1, -_MOST_VECTORS):
        count = min(vectors - first, _MOST_VECTORS)
        j = first * _LANES
        together = n // _ROWS * _ROWS
        for i in range(0, together, _ROWS):
            if count == 1:
                _many_1(x, transposed, out, i, j)
            elif count == 2:
                _many_2(x, transposed, out, i, j)
            elif count == 3:
                _many_3(x, transposed, out, i, j)
            elif count == 4:
                _many_4(x, transposed, out, i, j)
            else:
                _many_5(x, transposed, out, i, j)
        for i in range(together, n):
            if count == 1:
                _one_1(x, transposed, out, i, j)
            elif count == 2:
                _one_2(x, transposed, out, i, j)
            elif count == 3:
                _one_3(x, transposed, out, i, j)
            elif count == 4:
                _one_4(x, transposed, out, i, j)
            else:
                _one_5(x, transposed, out, i, j)
