"""The inner loop of retrieval: batched dot products of quantized vectors, in 16-bit integers.

A *direction* is a vector of length 1 whose elements are integer multiples of 1/`UNIT`, stored as
int16. Two neighbouring elements form a pair of 32 bits. Rows of pairs are multiplied by *strips*:
`LANES` directions side by side, interleaved pair by pair. One processor instruction multiplies and
adds a pair in each lane. Compared with single precision, this computes twice as many products from
half of the memory, without gathering or packing the rows. It reached 450 billion operations per
second on two cores; the BLAS reached 175 billion on matrices of this size.

LLVM chooses the processor's instructions, from pmaddwd of SSE2 to vpdpwssd of AVX-512.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir
from numba import types

from .jit import kernel, part
from .vectors import F32, I16, I32, I64, LANES, LANES_OF_F32, LANES_OF_I32, Emitter, emitted

if TYPE_CHECKING:
    from .jit import Array

#: The number of rows multiplied by a strip at once. With more, AVX2 runs out of registers.
ROWS_AT_ONCE = 6

#: The integer that stands for 1. All partial sums of a dot product of two directions are below
#: 2^31.
UNIT = 32767

#: A bound on the error of a few single-precision operations on numbers up to 1.
ROUNDING = 2.0**-20


def cosine_error(n_factors: int) -> float:
    """Return a bound on the error of the cosine of two directions.

    Each of the `n_factors` elements is rounded by at most half a unit, which moves a vector by at
    most √n_factors / 2 units.
    """
    moved = 0.5 * math.sqrt(n_factors) / UNIT
    return 2.0 * moved + moved * moved


@kernel
def to_directions(
    first: int, last: int, factors: Array, rows: Array, norms: Array, out: Array
) -> None:
    """Write the directions of the vectors ``factors[rows[i]]``, whose lengths are ``norms[i]``.

    `out`, of int16, has an even number of columns, so that it can be viewed as pairs. The direction
    of a zero vector is zero.
    """
    width = factors.shape[1]
    for i in range(first, last):
        row = rows[i]
        norm = norms[i] if norms[i] > 0.0 else 1.0
        for f in range(width):
            # Divide, because the inverse of the smallest norms is infinite. Clip, because their
            # norms are rounded too.
            value = np.float64(factors[row, f]) / norm * UNIT
            value = value if value < UNIT else np.float64(UNIT)
            value = value if value > -UNIT else np.float64(-UNIT)
            out[i, f] = np.int16(math.floor(value + 0.5))
        for f in range(width, out.shape[1]):
            out[i, f] = 0


@part
def pack(directions: Array, rows: Array, n: int, strips: Array) -> None:
    """Pack the first `n` rows into strips, int32 of shape (at least ⌈n / LANES⌉, pairs, LANES)."""
    n_pairs = directions.shape[1]
    for i in range(n):
        strip = i // LANES
        lane = i % LANES
        row = rows[i]
        for pair in range(n_pairs):
            strips[strip, pair, lane] = directions[row, pair]
    if n % LANES:
        for pair in range(n_pairs):
            for lane in range(n % LANES, LANES):
                strips[n // LANES, pair, lane] = 0


def _rows_of_pass(rows: Array, first: int) -> Array:
    return rows[np.minimum(np.arange(first, first + ROWS_AT_ONCE), len(rows) - 1)]


def _products(directions: Array, rows: Array, first: int, strips: Array, strip: int) -> Array:
    selected = directions[_rows_of_pass(rows, first)]
    left = np.ascontiguousarray(selected).view(np.int16)
    right = np.ascontiguousarray(strips[strip].T).view(np.int16)
    return (left.astype(np.int32) @ right.astype(np.int32).T).astype(np.float32)


def _multiply_in_numpy(
    directions: Array,
    rows: Array,
    first: int,
    strips: Array,
    strip: int,
    weights: Array,
    out: Array,
) -> None:
    lanes = slice(LANES * strip, LANES * (strip + 1))
    products = _products(directions, rows, first, strips, strip) * weights[lanes]
    out[first : first + ROWS_AT_ONCE, lanes] = (
        products if out.dtype == np.float32 else np.rint(products)
    )


def _mark_in_numpy(
    directions: Array,
    rows: Array,
    first: int,
    strips: Array,
    strip: int,
    weights: Array,
    margins: Array,
    limits: Array,
    marks: Array,
) -> None:
    selected = _rows_of_pass(rows, first)
    products = _products(directions, rows, first, strips, strip)
    upper = products * weights[selected][:, None] + margins[selected][:, None]
    above = upper > limits[LANES * strip : LANES * (strip + 1)]
    marks[first : first + ROWS_AT_ONCE, strip] = above @ (1 << np.arange(LANES))


def _load_rows(emitter: Emitter, rows: ir.Value, first: ir.Value) -> list[ir.Value]:
    """Load the row numbers, repeating the last one past the end."""
    builder = emitter.builder
    row_type = ir.IntType(emitter.types[1].dtype.bitwidth)
    last = builder.sub(builder.extract_value(rows.shape, 0), I64(1))
    numbers = []
    for r in range(ROWS_AT_ONCE):
        index = builder.add(first, I64(r))
        index = builder.select(builder.icmp_signed("<", index, last), index, last)
        pointer = emitter.pointer(rows, row_type, index)
        numbers.append(builder.sext(builder.load(pointer, typ=row_type), I64))
    return numbers


def _multiply_pairs(
    emitter: Emitter, directions: ir.Value, rows: list[ir.Value], strips: ir.Value, strip: ir.Value
) -> list[ir.Value]:
    """Multiply and add, pair by pair, in a loop."""
    builder = emitter.builder
    n_pairs = builder.extract_value(strips.shape, 1)
    left = [emitter.pointer(directions, I32, builder.mul(row, n_pairs)) for row in rows]
    size = builder.mul(n_pairs, I64(LANES))
    right = emitter.pointer(strips, I32, builder.mul(strip, size))

    before = builder.block
    loop = builder.append_basic_block("pairs")
    after = builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    pair = builder.phi(I64)
    pair.add_incoming(I64(0), before)
    sums = [builder.phi(LANES_OF_I32) for _ in rows]
    lanes = emitter.load(LANES_OF_I32, builder.gep(right, [pair], source_etype=LANES_OF_I32))
    updated = []
    for total, pointer in zip(sums, left, strict=True):
        value = emitter.load(I32, builder.gep(pointer, [pair], source_etype=I32))
        updated.append(builder.add(total, _multiply_pair(emitter, value, lanes)))
    following = builder.add(pair, I64(1))
    pair.add_incoming(following, loop)
    for total, more in zip(sums, updated, strict=True):
        total.add_incoming(ir.Constant(LANES_OF_I32, None), before)
        total.add_incoming(more, loop)
    builder.cbranch(builder.icmp_signed("<", following, n_pairs), loop, after)
    builder.position_at_end(after)
    return updated


def _multiply_pair(emitter: Emitter, pair: ir.Value, lanes: ir.Value) -> ir.Value:
    """Multiply a pair by the pair of each lane, and add the two products.

    In this form, with both halves taken from one wide product, LLVM recognizes a single instruction
    of many processors. It did not when the halves were taken before the product.
    """
    builder = emitter.builder
    halves = ir.VectorType(I16, 2 * LANES)
    wide = ir.VectorType(I32, 2 * LANES)
    both = [
        builder.sext(builder.bitcast(side, halves), wide)
        for side in (emitter.broadcast(pair, I32), lanes)
    ]
    products = builder.mul(*both)
    undefined = ir.Constant(wide, ir.Undefined)
    even, odd = (
        builder.shuffle_vector(
            products, undefined, ir.Constant(LANES_OF_I32, list(range(half, 2 * LANES, 2)))
        )
        for half in (0, 1)
    )
    return builder.add(even, odd)


def _multiply(
    emitter: Emitter,
    directions: ir.Value,
    rows: ir.Value,
    first: ir.Value,
    strips: ir.Value,
    strip: ir.Value,
    weights: ir.Value,
    out: ir.Value,
) -> None:
    builder = emitter.builder
    is_whole = emitter.types[-1].dtype == types.int16
    products = _multiply_pairs(emitter, directions, _load_rows(emitter, rows, first), strips, strip)
    lane = builder.mul(strip, I64(LANES))
    weight = emitter.load(LANES_OF_F32, emitter.pointer(weights, F32, lane))
    length = builder.extract_value(out.shape, 1)
    for r, product in enumerate(products):
        value = builder.fmul(builder.sitofp(product, LANES_OF_F32), weight)
        if is_whole:
            whole = builder.fptosi(emitter.rint(value), LANES_OF_I32)
            value = builder.trunc(whole, ir.VectorType(I16, LANES))
        begin = builder.mul(builder.add(first, I64(r)), length)
        pointer = emitter.pointer(out, I16 if is_whole else F32, builder.add(begin, lane))
        builder.store(value, pointer, align=2 if is_whole else 4)


def _mark_above(
    emitter: Emitter,
    directions: ir.Value,
    rows: ir.Value,
    first: ir.Value,
    strips: ir.Value,
    strip: ir.Value,
    weights: ir.Value,
    margins: ir.Value,
    limits: ir.Value,
    marks: ir.Value,
) -> None:
    builder = emitter.builder
    numbers = _load_rows(emitter, rows, first)
    products = _multiply_pairs(emitter, directions, numbers, strips, strip)
    lane = builder.mul(strip, I64(LANES))
    limit = emitter.load(LANES_OF_F32, emitter.pointer(limits, F32, lane))
    n_strips = builder.extract_value(marks.shape, 1)
    for r, (number, product) in enumerate(zip(numbers, products, strict=True)):
        weight, margin = (
            emitter.broadcast(emitter.load(F32, emitter.pointer(array, F32, number)), F32)
            for array in (weights, margins)
        )
        scaled = builder.fmul(builder.sitofp(product, LANES_OF_F32), weight)
        above = builder.fcmp_ordered(">", builder.fadd(scaled, margin), limit)
        index = builder.add(builder.mul(builder.add(first, I64(r)), n_strips), strip)
        builder.store(builder.bitcast(above, I16), emitter.pointer(marks, I16, index), align=2)


#: The types of directions, row numbers, the first of them, strips, and the number of a strip.
_FACTORS = (types.int32,), (), types.int64, (types.int32,), types.int64
_FLOATS = (types.float32,)

#: ``multiply(directions, rows, first, strips, strip, weights, out)`` multiplies
#: ``rows[first : first + ROWS_AT_ONCE]`` of `directions` by a strip, and each lane by its weight.
#: It writes to ``out[first : first + ROWS_AT_ONCE, LANES * strip : LANES * (strip + 1)]``, as
#: float32 or, rounded, as int16. Past the end of `rows`, its last element is repeated; `out` must
#: have room for these rows.
multiply = emitted(
    _multiply_in_numpy, _multiply, types.void, *_FACTORS, _FLOATS, (types.float32, types.int16)
)

#: ``mark_above(directions, rows, first, strips, strip, weights, margins, limits, marks)`` sets bits
#: of ``marks[first + r, strip]``, of uint16. Bit l is set if the product of row r and lane l, times
#: the weight of the row, plus its margin, exceeds ``limits[LANES * strip + l]``. `weights` and
#: `margins` are indexed like `directions`. Past the end of `rows`, it behaves like `multiply`.
mark_above = emitted(
    _mark_in_numpy, _mark_above, types.void, *_FACTORS, _FLOATS, _FLOATS, _FLOATS, (types.uint16,)
)
