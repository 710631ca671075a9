"""Counting the elements of a vector above a threshold, and writing down those too near to it.

A held-out item divides the catalogue in those above it, those below it, and the few that 16-bit
products cannot tell from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import compiled
from .products import LANES, Emitter

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

    from .jit import Array
    from .products import Intrinsic

#: The number of elements compared at once, whose results fit into a word.
COMPARED_AT_ONCE = 64


def _count_in_numpy(
    line: Array, low: int, high: int, index: int, selected: Array, n: int
) -> tuple[int, int]:
    near = index + np.flatnonzero((line > low) & (line <= high))
    selected[n : n + len(near)] = near
    return int((line > high).sum()), n + len(near)


@intrinsic
def _count_in_line(
    typing: TypingContext,
    line: types.Type,
    low: types.Type,
    high: types.Type,
    index: types.Type,
    selected: types.Type,
    n: types.Type,
) -> Intrinsic:
    pair = types.UniTuple(types.int64, 2)
    signature = pair(line, types.int64, types.int64, types.int64, selected, types.int64)

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: tuple[ir.Value, ...],
    ) -> ir.Value:
        bit, i16, i32, i64 = (ir.IntType(width) for width in (1, 16, 32, 64))
        elements = ir.VectorType(i16, COMPARED_AT_ONCE)
        ids = ir.VectorType(i32, LANES)
        emitter = Emitter(context, builder, signature, arguments)
        line, low, high, index, selected, n = emitter.arguments
        low, high = (
            emitter.broadcast(builder.trunc(bound, i16), i16, COMPARED_AT_ONCE)
            for bound in (low, high)
        )
        numbers = ir.Constant(ids, list(range(LANES)))
        length = builder.extract_value(line.shape, 0)

        before = builder.block
        loop, write, following, after = (
            builder.append_basic_block(name) for name in ("compare", "near", "next", "done")
        )
        builder.branch(loop)
        builder.position_at_end(loop)
        at, above, n_near = (builder.phi(i64) for _ in range(3))
        vector = builder.load(emitter.pointer(line, i16, at), align=2, typ=elements)
        higher, reached = (
            builder.bitcast(builder.icmp_signed(">", vector, bound), i64) for bound in (high, low)
        )
        more = builder.add(above, builder.ctpop(higher))
        near = builder.xor(higher, reached)
        builder.cbranch(builder.icmp_unsigned("!=", near, i64(0)), write, following)

        builder.position_at_end(write)
        n_written = n_near
        for lane in range(0, COMPARED_AT_ONCE, LANES):
            passes = builder.trunc(builder.lshr(near, i64(lane)), i16)
            first = builder.trunc(builder.add(builder.add(index, at), i64(lane)), i32)
            vector = builder.add(emitter.broadcast(first, i32), numbers)
            mask = builder.bitcast(passes, ir.VectorType(bit, LANES))
            n_written = emitter.write_passing(vector, mask, selected, n_written)
        builder.branch(following)

        builder.position_at_end(following)
        n_after = builder.phi(i64)
        n_after.add_incoming(n_near, loop)
        n_after.add_incoming(n_written, write)
        end = builder.add(at, i64(COMPARED_AT_ONCE))
        for phi, start, value in ((at, i64(0), end), (above, i64(0), more), (n_near, n, n_after)):
            phi.add_incoming(start, before)
            phi.add_incoming(value, following)
        builder.cbranch(builder.icmp_signed("<", end, length), loop, after)
        builder.position_at_end(after)
        return context.make_tuple(builder, signature.return_type, (more, n_after))

    return signature, generate


#: ``count_in_line(line, low, high, index, selected, n)`` returns how many elements of `line`, of
#: int16, are above `high`. The positions of those above `low` but not above `high`, `index` for the
#: first element, are written to `selected` from `n` on, in their order; where the next ones go is
#: returned second. What follows them there is overwritten: there is room for `LANES`. The length of
#: `line` is a multiple of `COMPARED_AT_ONCE`, and not 0; ``low <= high``, both within int16.
count_in_line = compiled(_count_in_numpy, _count_in_line)
