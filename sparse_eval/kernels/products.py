"""Products of many directions at once, in 16-bit integers.

A direction is a vector of length 1, each number a whole multiple of 1/`UNIT`. Two neighbouring
numbers make a pair of 32 bits. Rows of pairs are multiplied with *strips*: `LANES` directions side
by side, the first pairs of all, then the second ones. One processor instruction multiplies and adds
a pair in each lane, which is twice as many products as of single-precision numbers, from half of
the memory; nothing has to be gathered or packed on the side of the rows. 450 billion operations per
second on two cores, where the BLAS did 175 on matrices of this size.

What is computed here is written down once as Python, for reading and for an interpreter, and once
as what numba compiles: vectors cannot be written in Python. LLVM makes of it what the processor
has, from SSE2's pmaddwd to AVX-512's vpdpwssd.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import compiled, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jit import Array

__all__ = [
    "LANES",
    "ROUNDING",
    "ROWS",
    "UNIT",
    "error_of",
    "mark_above",
    "multiply",
    "pack",
    "to_directions",
]

#: Directions of a strip.
LANES = 16

#: Rows that are multiplied with a strip at once: with more, AVX2 has too few registers.
ROWS = 6

#: Length 1. The product of two directions, and so every sum on the way to it, is below 2^31.
UNIT = 32767


#: More than what a few single-precision operations on numbers up to 1 lose.
ROUNDING = 2.0**-20


def error_of(width: int) -> float:
    """Bound the error of the cosine of two directions with `width` factors.

    Each number is rounded by half a unit at most, so that a vector moves by √f/2 units at most.
    """
    moved = 0.5 * math.sqrt(width) / UNIT
    return 2.0 * moved + moved * moved


@kernel
def to_directions(
    first: int, last: int, factors: Array, rows: Array, norms: Array, out: Array
) -> None:
    """Write the directions of the vectors ``factors[rows[i]]``, whose lengths are ``norms[i]``.

    `out`, of int16, has an even number of columns, which others read as pairs; the direction of a
    zero is zero.
    """
    width = factors.shape[1]
    for i in range(first, last):
        row = rows[i]
        norm = norms[i] if norms[i] > 0.0 else 1.0
        for f in range(width):
            # Not times the inverse, which is infinite for the smallest numbers; their norms are
            # rounded too, hence the limits.
            value = np.float64(factors[row, f]) / norm * UNIT
            out[i, f] = np.int16(math.floor(min(max(value, -UNIT), UNIT) + 0.5))
        for f in range(width, out.shape[1]):
            out[i, f] = 0


@kernel
def pack(directions: Array, rows: Array, n: int, strips: Array) -> None:
    """Make strips, int32 of shape (⌈n / LANES⌉ or more, pairs, LANES), of the first `n` rows."""
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


def _products(directions: Array, rows: Array, first: int, strips: Array, strip: int) -> Array:
    chosen = rows[np.minimum(np.arange(first, first + ROWS), len(rows) - 1)]
    chosen = np.ascontiguousarray(directions[chosen]).view(np.int16)
    lanes = np.ascontiguousarray(strips[strip].T).view(np.int16)
    return (chosen.astype(np.int32) @ lanes.astype(np.int32).T).astype(np.float32)


def _multiply_plainly(
    directions: Array,
    rows: Array,
    first: int,
    strips: Array,
    strip: int,
    weights: Array,
    out: Array,
) -> None:
    lanes = slice(LANES * strip, LANES * (strip + 1))
    products = _products(directions, rows, first, strips, strip)
    out[first : first + ROWS, lanes] = products * weights[lanes]


def _mark_plainly(
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
    chosen = rows[np.minimum(np.arange(first, first + ROWS), len(rows) - 1)]
    products = _products(directions, rows, first, strips, strip)
    most = products * weights[chosen][:, None] + margins[chosen][:, None]
    above = most > limits[LANES * strip : LANES * (strip + 1)]
    marks[first : first + ROWS, strip] = above @ (1 << np.arange(LANES))


_I16, _I32, _I64, _F32 = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
_LANES_OF_I32 = ir.VectorType(_I32, LANES)
_LANES_OF_F32 = ir.VectorType(_F32, LANES)


class _Emitter:
    """Writes LLVM's instructions for `ROWS` rows and one strip."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.arrays = [
            context.make_array(kind)(context, builder, value)
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]

    def at(self, array: Any, index: Any, kind: Any) -> Any:
        """Point to an element of an array, as a `kind`."""
        pointer = self.builder.gep(array.data, [index])
        return self.builder.bitcast(pointer, kind.as_pointer())

    def load(self, pointer: Any, align: int) -> Any:
        value = self.builder.load(pointer)
        value.align = align
        return value

    def store(self, value: Any, pointer: Any, align: int) -> None:
        self.builder.store(value, pointer).align = align

    def spread(self, value: Any, row: Any) -> Any:
        """Copy a number into every lane."""
        nothing = ir.Constant(row, ir.Undefined)
        first = self.builder.insert_element(nothing, value, _I32(0))
        return self.builder.shuffle_vector(first, nothing, ir.Constant(_LANES_OF_I32, None))

    def rows(self, rows: Any, first: Any) -> list[Any]:
        """Load the row numbers; the last one stands in for those behind the end."""
        builder = self.builder
        last = builder.sub(builder.extract_value(rows.shape, 0), _I64(1))
        found = []
        for r in range(ROWS):
            index = builder.add(first, _I64(r))
            index = builder.select(builder.icmp_signed("<", index, last), index, last)
            number = builder.load(builder.gep(rows.data, [index]))
            found.append(number if number.type == _I64 else builder.sext(number, _I64))
        return found

    def multiply(self, directions: Any, rows: list[Any], strips: Any, strip: Any) -> list[Any]:
        """Multiply and add, pair by pair, in a loop."""
        builder = self.builder
        n_pairs = builder.extract_value(strips.shape, 1)
        pairs = [self.at(directions, builder.mul(row, n_pairs), _I32) for row in rows]
        size = builder.mul(n_pairs, _I64(LANES))
        lanes = self.at(strips, builder.mul(strip, size), _LANES_OF_I32)

        before = builder.block
        loop = builder.append_basic_block("pairs")
        after = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        pair = builder.phi(_I64)
        pair.add_incoming(_I64(0), before)
        sums = [builder.phi(_LANES_OF_I32) for _ in rows]
        lane = self.load(builder.gep(lanes, [pair]), 4)
        added = [
            builder.add(total, self.madd(self.load(builder.gep(row, [pair]), 4), lane))
            for total, row in zip(sums, pairs, strict=True)
        ]
        following = builder.add(pair, _I64(1))
        pair.add_incoming(following, loop)
        for total, more in zip(sums, added, strict=True):
            total.add_incoming(ir.Constant(_LANES_OF_I32, None), before)
            total.add_incoming(more, loop)
        builder.cbranch(builder.icmp_signed("<", following, n_pairs), loop, after)
        builder.position_at_end(after)
        return added

    def madd(self, pair: Any, lanes: Any) -> Any:
        """Multiply a pair with each lane's, and add the two products.

        LLVM knows this form, both halves of one wide product, as one instruction of many
        processors; with the halves taken before the product it did not.
        """
        builder = self.builder
        halves = ir.VectorType(_I16, 2 * LANES)
        wide = ir.VectorType(_I32, 2 * LANES)
        both = [
            builder.sext(builder.bitcast(side, halves), wide)
            for side in (self.spread(pair, _LANES_OF_I32), lanes)
        ]
        products = builder.mul(*both)
        nothing = ir.Constant(wide, ir.Undefined)
        even, odd = (
            builder.shuffle_vector(
                products, nothing, ir.Constant(_LANES_OF_I32, list(range(half, 2 * LANES, 2)))
            )
            for half in (0, 1)
        )
        return builder.add(even, odd)


def _arrays(*kinds: tuple[Any, Any]) -> bool:
    return all(isinstance(kind, types.Array) and kind.dtype == dtype for kind, dtype in kinds)


@intrinsic
def _multiply(
    typing: Any,
    directions: Any,
    rows: Any,
    first: Any,
    strips: Any,
    strip: Any,
    weights: Any,
    out: Any,
) -> tuple[Any, Callable[..., Any]] | None:
    expected = (directions, types.int32), (strips, types.int32)
    if not _arrays(*expected, (weights, types.float32), (out, types.float32)):
        return None
    signature = types.void(directions, rows, types.int64, strips, types.int64, weights, out)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emitter = _Emitter(context, builder, signature, arguments)
        directions, rows, first, strips, strip, weights, out = emitter.arrays
        products = emitter.multiply(directions, emitter.rows(rows, first), strips, strip)
        lane = builder.mul(strip, _I64(LANES))
        weight = emitter.load(emitter.at(weights, lane, _LANES_OF_F32), 4)
        length = builder.extract_value(out.shape, 1)
        for r, product in enumerate(products):
            value = builder.fmul(builder.sitofp(product, _LANES_OF_F32), weight)
            line = builder.mul(builder.add(first, _I64(r)), length)
            emitter.store(value, emitter.at(out, builder.add(line, lane), _LANES_OF_F32), 4)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _mark_above(
    typing: Any,
    directions: Any,
    rows: Any,
    first: Any,
    strips: Any,
    strip: Any,
    weights: Any,
    margins: Any,
    limits: Any,
    marks: Any,
) -> tuple[Any, Callable[..., Any]] | None:
    floats = [(kind, types.float32) for kind in (weights, margins, limits)]
    expected = (directions, types.int32), (strips, types.int32), (marks, types.uint16)
    if not _arrays(*expected, *floats):
        return None
    signature = types.void(
        directions, rows, types.int64, strips, types.int64, weights, margins, limits, marks
    )

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        emitter = _Emitter(context, builder, signature, arguments)
        directions, rows, first, strips, strip, weights, margins, limits, marks = emitter.arrays
        numbers = emitter.rows(rows, first)
        products = emitter.multiply(directions, numbers, strips, strip)
        lane = builder.mul(strip, _I64(LANES))
        limit = emitter.load(emitter.at(limits, lane, _LANES_OF_F32), 4)
        n_strips = builder.extract_value(marks.shape, 1)
        for r, (number, product) in enumerate(zip(numbers, products, strict=True)):
            weight, margin = (
                emitter.spread(emitter.load(emitter.at(array, number, _F32), 4), _LANES_OF_F32)
                for array in (weights, margins)
            )
            most = builder.fmul(builder.sitofp(product, _LANES_OF_F32), weight)
            above = builder.fcmp_ordered(">", builder.fadd(most, margin), limit)
            mark = builder.add(builder.mul(builder.add(first, _I64(r)), n_strips), strip)
            emitter.store(builder.bitcast(above, _I16), emitter.at(marks, mark, _I16), 2)
        return context.get_dummy_value()

    return signature, generate


#: ``multiply(directions, rows, first, strips, strip, weights, out)`` multiplies ``rows[first]`` and
#: its `ROWS` - 1 successors with a strip, and each lane with its weight, into
#: ``out[first : first + ROWS, LANES * strip : LANES * (strip + 1)]``. `rows` are rows of
#: `directions`, the last of them standing in for those behind the end; `out` has room for them.
multiply = compiled(_multiply_plainly, _multiply)

#: ``mark_above(directions, rows, first, strips, strip, weights, margins, limits, marks)`` sets bit
#: l of ``marks[first + r, strip]``, of uint16, if the product of row r and lane l, times the
#: weight of the row, plus its margin, exceeds ``limits[LANES * strip + l]``. `weights` and
#: `margins` belong to `directions`; rows behind the end as above.
mark_above = compiled(_mark_plainly, _mark_above)
