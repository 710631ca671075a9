"""The inner loop of retrieval: batched dot products of quantized vectors, in 16-bit integers.

A *direction* is a vector of length 1 whose elements are whole multiples of 1/`UNIT`, stored as
int16. Two neighbouring elements form a pair of 32 bits. Rows of pairs are multiplied with *strips*:
`LANES` directions side by side, interleaved pair by pair. One processor instruction multiplies and
adds a pair in each lane: twice as many products as in single precision, from half of the memory,
and without gathering or packing the rows. It reached 450 billion operations per second on two
cores, where the BLAS reached 175 on matrices of this size.

Each operation is written twice: in NumPy, as a reference and for running without compilation, and
as the LLVM IR that numba compiles, because numba cannot express vectors. LLVM chooses the
instructions of the processor, from SSE2's pmaddwd to AVX-512's vpdpwssd.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import compiled, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numba.core.base import BaseContext
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

    from .jit import Array

    #: What an intrinsic returns: its signature and the function that writes its instructions.
    Intrinsic: TypeAlias = tuple[Signature, Callable[..., ir.Value]]

#: The number of directions in a strip.
LANES = 16

#: The number of rows multiplied with a strip at once. With more, AVX2 runs out of registers.
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
            # Divided, because the inverse of the smallest norms is infinite; clipped, because their
            # norms are rounded as well.
            value = np.float64(factors[row, f]) / norm * UNIT
            out[i, f] = np.int16(math.floor(min(max(value, -UNIT), UNIT) + 0.5))
        for f in range(width, out.shape[1]):
            out[i, f] = 0


@kernel
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


_I16, _I32, _I64, _F32 = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
_LANES_OF_I16 = ir.VectorType(_I16, LANES)
_LANES_OF_I32 = ir.VectorType(_I32, LANES)
_LANES_OF_F32 = ir.VectorType(_F32, LANES)


class Emitter:
    """Writes the LLVM instructions for vectors, and for `ROWS_AT_ONCE` rows and one strip."""

    def __init__(
        self,
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: tuple[ir.Value, ...],
    ) -> None:
        self.builder = builder
        self.types = signature.args
        self.arguments = [
            context.make_array(kind)(context, builder, value)
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, arguments, strict=True)
        ]

    def pointer(self, array: ir.Value, element: ir.Type, index: ir.Value) -> ir.Value:
        """Return a pointer to an element of an array."""
        pointer = self.builder.gep(array.data, [index], source_etype=element)
        # numba's arrays hold typed pointers as long as llvmlite has them, and `store` would compare
        # the pointee with a vector.
        pointer.type = ir.PointerType()
        return pointer

    def load(self, kind: ir.Type, pointer: ir.Value) -> ir.Value:
        """Load a number or a vector, which need not be aligned as a vector."""
        return self.builder.load(pointer, align=4, typ=kind)

    def broadcast(self, value: ir.Value, element: ir.Type, lanes: int = LANES) -> ir.Value:
        """Copy a number into every lane."""
        undefined = ir.Constant(ir.VectorType(element, lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, value, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, lanes), None)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def rint(self, lanes: ir.Value) -> ir.Value:
        """Round to the nearest whole numbers, halves to even ones."""
        rint = self.builder.module.declare_intrinsic(
            f"llvm.rint.v{LANES}f32", (), ir.FunctionType(_LANES_OF_F32, [_LANES_OF_F32])
        )
        return self.builder.call(rint, [lanes])

    def write_passing(
        self, ids: ir.Value, passes: ir.Value, selected: ir.Value, n: ir.Value
    ) -> ir.Value:
        """Write the ids in the lanes that pass side by side; return where the next ones go.

        They go to `selected` from `n` on, and what follows them there is overwritten: there is room
        for `LANES`.
        """
        builder = self.builder
        kinds = [_LANES_OF_I32, passes.type, _LANES_OF_I32]
        compress = builder.module.declare_intrinsic(
            f"llvm.experimental.vector.compress.v{LANES}i32",
            (),
            ir.FunctionType(_LANES_OF_I32, kinds),
        )
        front = builder.call(compress, [ids, passes, ir.Constant(_LANES_OF_I32, ir.Undefined)])
        builder.store(front, self.pointer(selected, _I32, n), align=4)
        number = builder.ctpop(builder.bitcast(passes, _I16))
        return builder.add(n, builder.zext(number, _I64))

    def load_rows(self, rows: ir.Value, first: ir.Value) -> list[ir.Value]:
        """Load the row numbers; the last one is repeated past the end."""
        builder = self.builder
        row_type = ir.IntType(self.types[1].dtype.bitwidth)
        last = builder.sub(builder.extract_value(rows.shape, 0), _I64(1))
        numbers = []
        for r in range(ROWS_AT_ONCE):
            index = builder.add(first, _I64(r))
            index = builder.select(builder.icmp_signed("<", index, last), index, last)
            pointer = self.pointer(rows, row_type, index)
            numbers.append(builder.sext(builder.load(pointer, typ=row_type), _I64))
        return numbers

    def multiply(
        self, directions: ir.Value, rows: list[ir.Value], strips: ir.Value, strip: ir.Value
    ) -> list[ir.Value]:
        """Multiply and add, pair by pair, in a loop."""
        builder = self.builder
        n_pairs = builder.extract_value(strips.shape, 1)
        left = [self.pointer(directions, _I32, builder.mul(row, n_pairs)) for row in rows]
        size = builder.mul(n_pairs, _I64(LANES))
        right = self.pointer(strips, _I32, builder.mul(strip, size))

        before = builder.block
        loop = builder.append_basic_block("pairs")
        after = builder.append_basic_block("done")
        builder.branch(loop)
        builder.position_at_end(loop)
        pair = builder.phi(_I64)
        pair.add_incoming(_I64(0), before)
        sums = [builder.phi(_LANES_OF_I32) for _ in rows]
        lanes = self.load(_LANES_OF_I32, builder.gep(right, [pair], source_etype=_LANES_OF_I32))
        updated = []
        for total, pointer in zip(sums, left, strict=True):
            value = self.load(_I32, builder.gep(pointer, [pair], source_etype=_I32))
            updated.append(builder.add(total, self.multiply_pair(value, lanes)))
        following = builder.add(pair, _I64(1))
        pair.add_incoming(following, loop)
        for total, more in zip(sums, updated, strict=True):
            total.add_incoming(ir.Constant(_LANES_OF_I32, None), before)
            total.add_incoming(more, loop)
        builder.cbranch(builder.icmp_signed("<", following, n_pairs), loop, after)
        builder.position_at_end(after)
        return updated

    def multiply_pair(self, pair: ir.Value, lanes: ir.Value) -> ir.Value:
        """Multiply a pair with the pair of each lane, and add the two products.

        LLVM recognizes this form, both halves of one wide product, as one instruction of many
        processors. It did not when the halves were taken before the product.
        """
        builder = self.builder
        halves = ir.VectorType(_I16, 2 * LANES)
        wide = ir.VectorType(_I32, 2 * LANES)
        both = [
            builder.sext(builder.bitcast(side, halves), wide)
            for side in (self.broadcast(pair, _I32), lanes)
        ]
        products = builder.mul(*both)
        undefined = ir.Constant(wide, ir.Undefined)
        even, odd = (
            builder.shuffle_vector(
                products, undefined, ir.Constant(_LANES_OF_I32, list(range(half, 2 * LANES, 2)))
            )
            for half in (0, 1)
        )
        return builder.add(even, odd)


def _are_arrays(*expected: tuple[types.Type, types.Type]) -> bool:
    return all(isinstance(kind, types.Array) and kind.dtype == dtype for kind, dtype in expected)


@intrinsic
def _multiply(
    typing: TypingContext,
    directions: types.Type,
    rows: types.Type,
    first: types.Type,
    strips: types.Type,
    strip: types.Type,
    weights: types.Type,
    out: types.Type,
) -> Intrinsic | None:
    expected = (directions, types.int32), (strips, types.int32)
    is_whole = _are_arrays((out, types.int16))
    kind = types.int16 if is_whole else types.float32
    if not _are_arrays(*expected, (weights, types.float32), (out, kind)):
        return None
    signature = types.void(directions, rows, types.int64, strips, types.int64, weights, out)

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: tuple[ir.Value, ...],
    ) -> ir.Value:
        emitter = Emitter(context, builder, signature, arguments)
        directions, rows, first, strips, strip, weights, out = emitter.arguments
        products = emitter.multiply(directions, emitter.load_rows(rows, first), strips, strip)
        lane = builder.mul(strip, _I64(LANES))
        weight = emitter.load(_LANES_OF_F32, emitter.pointer(weights, _F32, lane))
        length = builder.extract_value(out.shape, 1)
        for r, product in enumerate(products):
            value = builder.fmul(builder.sitofp(product, _LANES_OF_F32), weight)
            if is_whole:
                value = builder.trunc(
                    builder.fptosi(emitter.rint(value), _LANES_OF_I32), _LANES_OF_I16
                )
            begin = builder.mul(builder.add(first, _I64(r)), length)
            pointer = emitter.pointer(out, _I16 if is_whole else _F32, builder.add(begin, lane))
            builder.store(value, pointer, align=2 if is_whole else 4)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _mark_above(
    typing: TypingContext,
    directions: types.Type,
    rows: types.Type,
    first: types.Type,
    strips: types.Type,
    strip: types.Type,
    weights: types.Type,
    margins: types.Type,
    limits: types.Type,
    marks: types.Type,
) -> Intrinsic | None:
    floats = [(kind, types.float32) for kind in (weights, margins, limits)]
    expected = (directions, types.int32), (strips, types.int32), (marks, types.uint16)
    if not _are_arrays(*expected, *floats):
        return None
    signature = types.void(
        directions, rows, types.int64, strips, types.int64, weights, margins, limits, marks
    )

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: tuple[ir.Value, ...],
    ) -> ir.Value:
        emitter = Emitter(context, builder, signature, arguments)
        directions, rows, first, strips, strip, weights, margins, limits, marks = emitter.arguments
        numbers = emitter.load_rows(rows, first)
        products = emitter.multiply(directions, numbers, strips, strip)
        lane = builder.mul(strip, _I64(LANES))
        limit = emitter.load(_LANES_OF_F32, emitter.pointer(limits, _F32, lane))
        n_strips = builder.extract_value(marks.shape, 1)
        for r, (number, product) in enumerate(zip(numbers, products, strict=True)):
            weight, margin = (
                emitter.broadcast(emitter.load(_F32, emitter.pointer(array, _F32, number)), _F32)
                for array in (weights, margins)
            )
            scaled = builder.fmul(builder.sitofp(product, _LANES_OF_F32), weight)
            above = builder.fcmp_ordered(">", builder.fadd(scaled, margin), limit)
            index = builder.add(builder.mul(builder.add(first, _I64(r)), n_strips), strip)
            builder.store(
                builder.bitcast(above, _I16), emitter.pointer(marks, _I16, index), align=2
            )
        return context.get_dummy_value()

    return signature, generate


#: ``multiply(directions, rows, first, strips, strip, weights, out)`` multiplies
#: ``rows[first : first + ROWS_AT_ONCE]`` of `directions` with a strip, and each lane with its
#: weight, into ``out[first : first + ROWS_AT_ONCE, LANES * strip : LANES * (strip + 1)]``, which is
#: of float32 or, rounded, of int16. Past the end of `rows` its last element is repeated; `out` must
#: have room for these rows.
multiply = compiled(_multiply_in_numpy, _multiply)

#: ``mark_above(directions, rows, first, strips, strip, weights, margins, limits, marks)`` sets bit
#: l of ``marks[first + r, strip]``, of uint16, if the product of row r and lane l, times the
#: weight of the row, plus its margin, exceeds ``limits[LANES * strip + l]``. `weights` and
#: `margins` are indexed like `directions`; past the end of `rows` as in `multiply`.
mark_above = compiled(_mark_in_numpy, _mark_above)
