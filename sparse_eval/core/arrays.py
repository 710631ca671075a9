"""Arrays of NumPy from what callers give: other libraries' arrays and tensors, and lists.

None of these libraries is imported. Tensors lend their memory by ``__dlpack__``, the protocol of
the array API standard, and anything else is read by ``__array__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidDataError
from .mistaken import describe, is_frame, mistaken

if TYPE_CHECKING:
    from typing import TypeVar

    from numpy.typing import NDArray

    from .types import AnyArray

    Scalar = TypeVar("Scalar", bound=np.generic)


def is_array(values: object) -> bool:
    """Return whether a value is an array, of NumPy or any library, rather than a list or frame."""
    return (hasattr(values, "__dlpack__") or hasattr(values, "__array__")) and not is_frame(values)


def as_array(values: object, name: str, expected: str) -> AnyArray:
    """Return `values` as a plain array of NumPy, without a copy where the memory can be shared.

    Parameters
    ----------
    values : array_like
        Or an array or tensor of another library, in memory that the CPU can read.
    name : str
        How error messages refer to the values.
    expected : str
        What they say that was expected.

    Raises
    ------
    InvalidDataError
        If the values are masked, sparse, a frame or no array at all; if rows have different
        lengths; or if NumPy cannot read a tensor, because it requires grad, is on a GPU, or has a
        dtype unknown to NumPy.
    """
    if isinstance(values, np.ma.MaskedArray):  # numpy.asarray would uncover the masked values
        raise InvalidDataError(
            f"{name} is a masked array; expected a plain one, see .filled()", argument=name
        )
    if isinstance(values, np.ndarray):
        return np.asarray(values)  # not a matrix, nor another subclass
    if not (is_array(values) or isinstance(values, Sequence)) or isinstance(values, str | bytes):
        raise mistaken(values, name, expected)
    try:
        if hasattr(values, "__dlpack__"):
            return np.from_dlpack(values)
    except (BufferError, RuntimeError, TypeError, ValueError):
        pass  # what DLPack has no word for, such as an array of text, may still be an array
    try:
        return np.asarray(values)
    except (BufferError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidDataError(
            f"{name} is {describe(values)} that NumPy cannot read ({error}); expected {expected}",
            argument=name,
        ) from None


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view.

    numba compiles a kernel separately for read-only arrays, such as memory-mapped ones. If it is
    given read-only arrays only, it compiles the kernel once.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
