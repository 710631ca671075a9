"""Prefetching: asking the processor to load memory that will be read soon.

Users are processed in the order of their groups, so the data of a user can be anywhere in memory: a
hundred nanoseconds away, as long as everything that is then done with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import compiled

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

    from .jit import Array
    from .products import Intrinsic

#: The prefetch distance, in rows.
DISTANCE = 8

#: The size of a cache line in bytes.
_LINE = 64


def _do_nothing(array: Array, first: int, n: int) -> None:
    """Stand in for `prefetch` without compilation."""


@intrinsic
def _prefetch(
    typing: TypingContext, array: types.Type, first: types.Type, n: types.Type
) -> Intrinsic:
    signature = types.void(array, types.int64, types.int64)

    def generate(
        context: BaseContext,
        builder: ir.IRBuilder,
        signature: Signature,
        arguments: tuple[ir.Value, ...],
    ) -> ir.Value:
        pointer, i8, i32, i64 = ir.PointerType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)
        value, first, n = arguments
        kind = signature.args[0]
        size = i64(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        array = context.make_array(kind)(context, builder, value)
        begin = builder.gep(array.data, [builder.mul(first, size)], source_etype=i8)
        stop = builder.mul(n, size)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32])
        )
        before = builder.block
        loop = builder.append_basic_block("fetch")
        after = builder.append_basic_block("fetched")
        builder.cbranch(builder.icmp_signed(">", stop, i64(0)), loop, after)
        builder.position_at_end(loop)
        offset = builder.phi(i64)
        offset.add_incoming(i64(0), before)
        line = builder.gep(begin, [offset], source_etype=i8)
        read, all_levels, data = i32(0), i32(3), i32(1)
        builder.call(fetch, [line, read, all_levels, data])
        following = builder.add(offset, i64(_LINE))
        offset.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, stop), loop, after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return signature, generate


#: ``prefetch(array, first, n)`` prefetches `n` elements of a contiguous array, starting with
#: element `first` of its flat form. They may lie outside of the array, because nothing is read.
prefetch = compiled(_do_nothing, _prefetch)
