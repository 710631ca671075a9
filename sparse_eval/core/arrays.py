"""NumPy arrays from the arguments of callers: lists, and arrays and tensors of other libraries.

None of these libraries is imported. Tensors share their memory through ``__dlpack__``, the protocol
of the array API standard. Anything else is read through ``__array__``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidDataError
from .mistaken import describe, mistaken

if TYPE_CHECKING:
    from typing import TypeVar

    from numpy.typing import NDArray

    from .types import AnyArray

    Scalar = TypeVar("Scalar", bound=np.generic)


def is_array(values: object) -> bool:
    """Return whether a value is an array of any library, rather than a list or a frame."""
    is_frame = hasattr(type(values), "columns")
    return (hasattr(values, "__dlpack__") or hasattr(values, "__array__")) and not is_frame


def as_array(values: object, name: str, expected: str) -> AnyArray:
    """Return `values` as a plain NumPy array, without a copy if the memory can be shared.

    Parameters
    ----------
    values : array_like
        An array or tensor of another library must be in memory that the CPU can read.
    name : str
        How error messages refer to the values.
    expected : str
        The expected input, for error messages.

    Raises
    ------
    InvalidDataError
        If the values are masked, sparse, a frame or not an array at all; if rows have different
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
        pass  # arrays that DLPack cannot describe, such as text, are read through __array__
    try:
        return np.asarray(values)
    except (BufferError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise InvalidDataError(
            f"{name} is {describe(values)} that NumPy cannot read ({error}); expected {expected}",
            argument=name,
        ) from None


def read_only(array: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a read-only view.

    numba compiles a kernel separately for read-only arrays, such as memory-mapped ones. If all
    arrays are read-only, it compiles the kernel only once.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
