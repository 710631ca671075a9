"""Selecting the items of a vector of products, in a few instructions and without a branch.

Which items pass is unpredictable, and a processor that guesses wrong loses as much time as it takes
to multiply an item: a loop with branches took twice as long as the products it selected from.
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

    Single = np.float32


def _compress_in_numpy(
    line: Array, first: int, bound: Single, items: Array, selected: Array, n: int
) -> int:
    lanes = slice(first, first + LANES)
    chosen = items[lanes][(line[lanes] >= bound) & (line[lanes] > -np.inf)]
    selected[n : n + len(chosen)] = chosen
    return n + len(chosen)


@intrinsic
def _compress(
    typing: TypingContext,
    line: types.Type,
    first: types.Type,
    bound: types.Type,
    items: types.Type,
    selected: types.Type,
    n: types.Type,
) -> Intrinsic:
    signature = types.int64(line, types.int64, types.float32, items, selected, types.int64)

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: tuple[ir.Value, ...],
    ) -> ir.Value:
        i32, single = ir.IntType(32), ir.FloatType()
        products, ids = ir.VectorType(single, LANES), ir.VectorType(i32, LANES)
        emitter = Emitter(context, builder, signature, arguments)
        line, first, bound, items, selected, n = emitter.arguments
        vector = emitter.load(products, emitter.pointer(line, single, first))
        passes = builder.and_(
            builder.fcmp_ordered(">=", vector, emitter.broadcast(bound, single)),
            builder.fcmp_ordered(">", vector, emitter.broadcast(single(float("-inf")), single)),
        )
        item = emitter.load(ids, emitter.pointer(items, i32, first))
        return emitter.write_passing(item, passes, selected, n)

    return signature, generate


#: ``compress(line, first, bound, items, selected, n)`` writes those of the `LANES` items from
#: `first` on whose product is at least `bound`, and more than minus infinity, to `selected` from
#: `n` on, in their order, and returns where the next ones go. What follows them there is
#: overwritten: there is room for `LANES`. `line` and `items` have at least ``first + LANES``
#: elements.
compress = compiled(_compress_in_numpy, _compress)
