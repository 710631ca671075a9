"""Telling the processor what will be read soon.

Users are worked on in the order of their groups, so what belongs to a user is anywhere in memory,
a hundred nanoseconds away, which is as long as all that is then done with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jit import Array

__all__ = ["prefetch"]

#: Bytes that are fetched at once.
_LINE = 64


def _do_nothing(array: Array, first: int, n: int) -> None:
    """Interpreted, nothing is gained."""


@intrinsic
def _prefetch(typing: Any, array: Any, first: Any, n: Any) -> tuple[Any, Callable[..., Any]]:
    signature = types.void(array, types.int64, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i8, i32, i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
        value, first, n = arguments
        kind = signature.args[0]
        size = i64(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        array = context.make_array(kind)(context, builder, value)
        begin = builder.bitcast(array.data, i8.as_pointer())
        begin = builder.gep(begin, [builder.mul(first, size)])
        stop = builder.mul(n, size)
        fetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [i8.as_pointer()],
            ir.FunctionType(ir.VoidType(), [i8.as_pointer(), i32, i32, i32]),
        )
        before = builder.block
        loop = builder.append_basic_block("fetch")
        after = builder.append_basic_block("fetched")
        builder.cbranch(builder.icmp_signed(">", stop, i64(0)), loop, after)
        builder.position_at_end(loop)
        offset = builder.phi(i64)
        offset.add_incoming(i64(0), before)
        builder.call(fetch, [builder.gep(begin, [offset]), i32(0), i32(3), i32(1)])
        following = builder.add(offset, i64(_LINE))
        offset.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, stop), loop, after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return signature, generate


#: ``prefetch(array, first, n)`` has `n` elements of a contiguous array fetched, from the one on
#: that would be ``first`` if it were flat. They are not read, and may be outside of the array.
prefetch = compiled(_do_nothing, _prefetch)
