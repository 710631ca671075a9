"""Conversion of callers' inputs to NumPy arrays, and errors about other types.

Arrays and tensors may be of any library, and none of these is imported. Tensors share their memory
through ``__dlpack__``, the protocol of the array API standard. Anything else is read through
``__array__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidDataError

if TYPE_CHECKING:
    from typing import TypeVar

    from numpy.typing import NDArray

    from .types import AnyArray

    Scalar = TypeVar("Scalar", bound=np.generic)

#: The largest number of column names in a message.
_MOST_COLUMNS = 8

#: The expected input where a matrix is needed, for error messages.
SPARSE = "a scipy sparse matrix, such as scipy.sparse.csr_matrix(x) of a dense array"


def is_array(values: object) -> bool:
    """Return whether a value is an array of any library, rather than a list or a frame."""
    is_readable = hasattr(values, "__dlpack__") or hasattr(values, "__array__")
    return is_readable and not is_frame(values)


def of_arrow(column: Any) -> AnyArray:
    """Return a column of Arrow as an array that cannot be written.

    Arrow's own `to_numpy` imports pandas, which takes longer than to evaluate a small input. So it
    is left to columns with nulls, and to those that hold neither numbers nor booleans.
    """
    from pyarrow import types

    chunks, kind = getattr(column, "chunks", [column]), column.type
    if types.is_boolean(kind) and not column.null_count:
        return of_arrow(column.cast("uint8")).view(bool)
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if not is_number or column.null_count or not chunks:
        array: AnyArray = np.asarray(column)
    elif len(chunks) == 1:
        array = np.from_dlpack(chunks[0])
    else:
        array = np.concatenate([np.from_dlpack(chunk) for chunk in chunks])
    array.flags.writeable = False
    return array


def to_arrow(array: AnyArray) -> Any:
    """Return an array of numbers as one of Arrow; `pyarrow.array` would import pandas."""
    import pyarrow as pa

    array = np.ascontiguousarray(array)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(array.dtype), len(array), [None, pa.py_buffer(array)]
    )


def as_array(values: object, name: str, expected: str) -> AnyArray:
    """Return `values` as a plain NumPy array, without a copy if the memory can be shared.

    Raises `InvalidDataError` if the values are masked, sparse, a frame or not an array at all, or
    if rows have different lengths. Also if NumPy cannot read a tensor: it requires grad, is on a
    GPU, or has a dtype unknown to NumPy.

    Parameters
    ----------
    values : array_like
        An array or tensor of another library must be in memory that the CPU can read.
    name : str
        How error messages refer to the values.
    expected : str
        The expected input, for error messages.
    """
    if isinstance(values, np.ma.MaskedArray):  # numpy.asarray would uncover the masked values
        raise InvalidDataError(
            f"{name} is a masked array; expected a plain one, see .filled()", argument=name
        )
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # not a matrix, nor another subclass
    if not (is_array(values) or isinstance(values, Sequence)) or isinstance(values, str | bytes):
        raise wrong_type(values, name, expected)
    try:
        if hasattr(values, "__dlpack__"):
            return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError, ValueError):
        pass  # arrays that DLPack cannot describe, such as text, are read through __array__
    try:
        return np.asarray(values)
    except (BufferError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidDataError(
            f"{name} is {describe(values)} that NumPy cannot read ({error}); expected {expected}",
            argument=name,
        ) from None


def check_exact(scores: AnyArray) -> None:
    """Raise if float64 would round whole numbers, and make ties of them."""
    if scores.dtype.kind in "iu" and scores.dtype.itemsize == 8 and scores.size:
        for score in (scores.min(), scores.max()):
            if abs(int(score)) > 2**53:
                raise InvalidDataError(
                    f"scores contain {score}, a whole number beyond 2^53, which float64 cannot "
                    "represent exactly. Pass ranks, or scores as floats",
                    argument="scores",
                )


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view.

    numba compiles a kernel separately for read-only arrays, such as memory-mapped ones. If all
    arrays are read-only, it compiles the kernel only once.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def is_frame(values: object) -> bool:
    """Return whether a value is a frame of pandas, polars, Arrow, Spark or similar."""
    return hasattr(type(values), "columns")


def describe(values: Any) -> str:
    """Describe a value in a few words: its type, and its columns or dtype and shape."""
    if type(values) is np.ndarray:
        return f"an array of {values.dtype} with shape {values.shape}"
    name = type(values).__name__
    kind = f"an {name}" if name[0].lower() in "aeio" else f"a {name}"
    if is_frame(values):
        names = column_names(values)
        more = ", …" if len(names) > _MOST_COLUMNS else ""
        return f"{kind} with the columns {', '.join(names[:_MOST_COLUMNS])}{more}"
    return f"{kind} with shape {values.shape}" if hasattr(values, "tocsr") else kind


def wrong_type(values: Any, name: str, expected: str) -> InvalidDataError:
    """Return the error about an input called `name` that is not what was `expected`."""
    hint = None
    if name == "the position matrix":  # first, because csr_matrix(x) of item ids has no hits
        expected = (
            "Rankings.from_topk(x) of item ids, best first, Rankings.from_scores(x) of scores, or "
            f"{expected}"
        )
    elif name == "the validation matrix" and isinstance(values, list | tuple):
        expected = f"a mapping of users to items, a frame with a row for each item, or {expected}"
    if is_frame(values):
        hint = "Rankings.from_frame, Relevance.from_frame and Interactions.from_frame take frames"
    elif callable(getattr(values, "matrix", None)):
        hint = "give its .matrix()"
    elif hasattr(values, "to_dict"):
        hint = "for a Series of lists by user, pass x.to_dict()"
    message = f"{name} is {describe(values)}; expected {expected}"
    return InvalidDataError(message, argument=name, hint=hint)


def column_names(frame: Any) -> list[str]:
    """Return the column names of a frame, without reading a row."""
    kind = type(frame)  # frames of Spark have any attribute
    if hasattr(kind, "collect_schema"):  # polars warns if .columns has to be computed
        return list(map(str, frame.collect_schema().names()))
    if not hasattr(kind, "columns"):
        return list(map(str, getattr(getattr(frame, "schema", None), "names", ())))
    return list(map(str, frame.column_names if hasattr(kind, "column_names") else frame.columns))
