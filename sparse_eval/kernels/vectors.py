"""Vector operations that numba cannot express, written twice: in NumPy, and as LLVM instructions.

The NumPy form is the reference, and runs if compilation is disabled. LLVM chooses the instructions
of the processor. Selection has no branches, because it is unpredictable which items pass, and a
wrong prediction costs as much time as multiplying an item.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .jit import INTERPRETED

if TYPE_CHECKING:
    from collections.abc import Callable

    from .jit import Array

    Single = np.float32

F = TypeVar("F", bound="Callable[..., Any]")

#: The number of elements of 32 bits in a vector.
LANES = 16

#: The number of elements that `count_in_line` compares at once; their results fit into a word.
COMPARED_AT_ONCE = 64

#: The prefetch distance, in rows.
DISTANCE = 8

#: The size of a cache line in bytes.
_LINE = 64

I8, I16, I32, I64, F32 = *map(ir.IntType, (8, 16, 32, 64)), ir.FloatType()
LANES_OF_I32, LANES_OF_F32 = ir.VectorType(I32, LANES), ir.VectorType(F32, LANES)


def emitted(
    plain: F,
    emit: Callable[..., ir.Value | tuple[ir.Value, ...] | None],
    returns: types.Type,
    *kinds: types.Type | tuple[types.Type, ...],
) -> F:
    """Return an operation for kernels, or its plain form if compilation is disabled.

    `emit` takes an `Emitter` and the arguments of `plain`, and writes the instructions. `kinds` are
    the types of the arguments. For an array, this is a tuple of the types that its elements may
    have; an empty tuple allows any type.
    """

    def operation(typing: object, *given: types.Type) -> Any:
        chosen = []
        for kind, own in zip(kinds, given, strict=True):
            if isinstance(kind, tuple) and kind and getattr(own, "dtype", None) not in kind:
                return None
            chosen.append(own if isinstance(kind, tuple) else kind)

        def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
            emitter = Emitter(context, builder, signature, values)
            result = emit(emitter, *emitter.arguments)
            if isinstance(result, tuple):
                return context.make_tuple(builder, signature.return_type, result)
            return context.get_dummy_value() if result is None else result

        return returns(*chosen), generate

    if INTERPRETED:
        return plain
    names = ["typing", *inspect.signature(plain).parameters]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    operation.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, kind) for name in names]
    )
    return cast("F", intrinsic(operation))


class Emitter:
    """Writes LLVM instructions for vectors, from the arguments of an operation."""

    def __init__(
        self,
        context: Any,
        builder: ir.IRBuilder,
        signature: Any,
        arguments: Any,
    ) -> None:
        self.context = context
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
        # numba's arrays have typed pointers while llvmlite still supports them, and `store` would
        # compare the type of the pointee with a vector.
        pointer.type = ir.PointerType()
        return pointer

    def load(self, kind: ir.Type, pointer: ir.Value) -> ir.Value:
        """Load a number or a vector, without requiring the alignment of a vector."""
        return self.builder.load(pointer, align=4, typ=kind)

    def broadcast(self, value: ir.Value, element: ir.Type, lanes: int = LANES) -> ir.Value:
        """Copy a number into every lane."""
        undefined = ir.Constant(ir.VectorType(element, lanes), ir.Undefined)
        first = self.builder.insert_element(undefined, value, I32(0))
        zeros = ir.Constant(ir.VectorType(I32, lanes), None)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def rint(self, lanes: ir.Value) -> ir.Value:
        """Round to the nearest integers, and halves to even integers."""
        rint = self.builder.module.declare_intrinsic(
            f"llvm.rint.v{LANES}f32", (), ir.FunctionType(LANES_OF_F32, [LANES_OF_F32])
        )
        return self.builder.call(rint, [lanes])

    def write_passing(
        self, ids: ir.Value, passes: ir.Value, selected: ir.Value, n: ir.Value
    ) -> ir.Value:
        """Write the ids of the passing lanes without gaps; return the position of the next ones.

        They are written to `selected` from `n` on. Up to `LANES` elements there are overwritten, so
        `selected` must have room for them.
        """
        builder = self.builder
        kinds = [LANES_OF_I32, passes.type, LANES_OF_I32]
        compress = builder.module.declare_intrinsic(
            f"llvm.experimental.vector.compress.v{LANES}i32",
            (),
            ir.FunctionType(LANES_OF_I32, kinds),
        )
        front = builder.call(compress, [ids, passes, ir.Constant(LANES_OF_I32, ir.Undefined)])
        builder.store(front, self.pointer(selected, I32, n), align=4)
        number = builder.ctpop(builder.bitcast(passes, I16))
        return builder.add(n, builder.zext(number, I64))


def _do_nothing(array: Array, first: int, n: int) -> None:
    """Stand in for `prefetch` without compilation."""


def _prefetch(emitter: Emitter, value: ir.Value, first: ir.Value, n: ir.Value) -> None:
    context, builder = emitter.context, emitter.builder
    size = I64(context.get_abi_sizeof(context.get_data_type(emitter.types[0].dtype)))
    begin = builder.gep(value.data, [builder.mul(first, size)], source_etype=I8)
    stop = builder.mul(n, size)
    pointer = ir.PointerType()
    kind = ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
    fetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
    before = builder.block
    loop = builder.append_basic_block("fetch")
    after = builder.append_basic_block("fetched")
    builder.cbranch(builder.icmp_signed(">", stop, I64(0)), loop, after)
    builder.position_at_end(loop)
    offset = builder.phi(I64)
    offset.add_incoming(I64(0), before)
    line = builder.gep(begin, [offset], source_etype=I8)
    read, all_levels, data = I32(0), I32(3), I32(1)
    builder.call(fetch, [line, read, all_levels, data])
    following = builder.add(offset, I64(_LINE))
    offset.add_incoming(following, loop)
    builder.cbranch(builder.icmp_signed("<", following, stop), loop, after)
    builder.position_at_end(after)


#: ``prefetch(array, first, n)`` asks the processor to load `n` elements of a contiguous array that
#: will be read soon, from element `first` of its flat form on. They may lie outside the array,
#: because nothing is read. Users are processed in the order of their groups, so the data of a user
#: can be anywhere in memory. Loading them takes a hundred nanoseconds, as long as the work on them.
prefetch = emitted(_do_nothing, _prefetch, types.void, (), types.int64, types.int64)


def _compress_in_numpy(
    line: Array, first: int, bound: Single, items: Array, selected: Array, n: int
) -> int:
    lanes = slice(first, first + LANES)
    chosen = items[lanes][(line[lanes] >= bound) & (line[lanes] > -np.inf)]
    selected[n : n + len(chosen)] = chosen
    return n + len(chosen)


def _compress(
    emitter: Emitter,
    line: ir.Value,
    first: ir.Value,
    bound: ir.Value,
    items: ir.Value,
    selected: ir.Value,
    n: ir.Value,
) -> ir.Value:
    builder = emitter.builder
    vector = emitter.load(LANES_OF_F32, emitter.pointer(line, F32, first))
    passes = builder.and_(
        builder.fcmp_ordered(">=", vector, emitter.broadcast(bound, F32)),
        builder.fcmp_ordered(">", vector, emitter.broadcast(F32(float("-inf")), F32)),
    )
    item = emitter.load(LANES_OF_I32, emitter.pointer(items, I32, first))
    return emitter.write_passing(item, passes, selected, n)


#: ``compress(line, first, bound, items, selected, n)`` selects from the `LANES` items from `first`
#: on. It writes the items whose product is at least `bound`, and more than minus infinity, to
#: `selected` from `n` on, in their order. It returns the position of the next ones. Up to `LANES`
#: elements of `selected` are overwritten, so it must have room for them. `line` and `items` have at
#: least ``first + LANES`` elements.
compress = emitted(
    _compress_in_numpy, _compress, types.int64,
    (types.float32,), types.int64, types.float32, (types.int32,), (types.int32,), types.int64,
)  # fmt: skip


def _count_in_numpy(
    line: Array, low: int, high: int, index: int, selected: Array, n: int
) -> tuple[int, int]:
    near = index + np.flatnonzero((line > low) & (line <= high))
    selected[n : n + len(near)] = near
    return int((line > high).sum()), n + len(near)


def _count_in_line(
    emitter: Emitter,
    line: ir.Value,
    low: ir.Value,
    high: ir.Value,
    index: ir.Value,
    selected: ir.Value,
    n: ir.Value,
) -> tuple[ir.Value, ...]:
    builder = emitter.builder
    elements = ir.VectorType(I16, COMPARED_AT_ONCE)
    low, high = (
        emitter.broadcast(builder.trunc(bound, I16), I16, COMPARED_AT_ONCE) for bound in (low, high)
    )
    numbers = ir.Constant(LANES_OF_I32, list(range(LANES)))
    length = builder.extract_value(line.shape, 0)

    before = builder.block
    loop, write, following, after = (
        builder.append_basic_block(name) for name in ("compare", "near", "next", "done")
    )
    builder.branch(loop)
    builder.position_at_end(loop)
    at, above, n_near = (builder.phi(I64) for _ in range(3))
    vector = builder.load(emitter.pointer(line, I16, at), align=2, typ=elements)
    higher, reached = (
        builder.bitcast(builder.icmp_signed(">", vector, bound), I64) for bound in (high, low)
    )
    more = builder.add(above, builder.ctpop(higher))
    near = builder.xor(higher, reached)
    builder.cbranch(builder.icmp_unsigned("!=", near, I64(0)), write, following)

    builder.position_at_end(write)
    n_written = n_near
    for lane in range(0, COMPARED_AT_ONCE, LANES):
        passes = builder.trunc(builder.lshr(near, I64(lane)), I16)
        first = builder.trunc(builder.add(builder.add(index, at), I64(lane)), I32)
        vector = builder.add(emitter.broadcast(first, I32), numbers)
        mask = builder.bitcast(passes, ir.VectorType(ir.IntType(1), LANES))
        n_written = emitter.write_passing(vector, mask, selected, n_written)
    builder.branch(following)

    builder.position_at_end(following)
    n_after = builder.phi(I64)
    n_after.add_incoming(n_near, loop)
    n_after.add_incoming(n_written, write)
    end = builder.add(at, I64(COMPARED_AT_ONCE))
    for phi, start, value in ((at, I64(0), end), (above, I64(0), more), (n_near, n, n_after)):
        phi.add_incoming(start, before)
        phi.add_incoming(value, following)
    builder.cbranch(builder.icmp_signed("<", end, length), loop, after)
    builder.position_at_end(after)
    return more, n_after


#: ``count_in_line(line, low, high, index, selected, n)`` returns the number of elements of `line`
#: (int16) above `high`, and the position in `selected` after the last one written. It writes the
#: positions of the elements above `low` but not above `high` to `selected` from `n` on, in their
#: order. The position of the first element is `index`. Up to `LANES` elements after the written
#: ones are overwritten, so `selected` must have room for them. The length of `line` is a multiple
#: of `COMPARED_AT_ONCE`, and not 0; ``low <= high``, both within int16.
count_in_line = emitted(
    _count_in_numpy, _count_in_line, types.UniTuple(types.int64, 2),
    (types.int16,), types.int64, types.int64, types.int64, (types.int32,), types.int64,
)  # fmt: skip
