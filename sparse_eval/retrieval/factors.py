"""Validate user and item factors, and compute the length of each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.arrays import as_array, is_array, read_only
from ..core.mistaken import describe
from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..kernels.exact import measure_rows

if TYPE_CHECKING:
    from ..core.types import AnyArray, Floats

#: Rows per block of `measure_rows`.
_BLOCK = 10_000


class MeasuredFactors(NamedTuple):
    """Read-only factors of float32 or float64, and the Euclidean norm of each row."""

    values: AnyArray
    norms: Floats


def check_factors(
    user_factors: object, item_factors: object, num_threads: int | None = None
) -> tuple[MeasuredFactors, MeasuredFactors]:
    """Return the factors of both sides in the form that the kernels take.

    They may be tensors in memory that the CPU can read. float16 becomes float32; an array that
    needs no conversion is not copied. Raises `InvalidDataError` if a side is not a two-dimensional
    float array, a row is not finite (the message names it), or the widths differ.
    """
    users = _check_side(user_factors, "user_factors", num_threads)
    items = _check_side(item_factors, "item_factors", num_threads)
    widths = users.values.shape[1], items.values.shape[1]
    if widths[0] != widths[1]:
        raise InvalidDataError(
            f"user_factors have {widths[0]} columns, item_factors {widths[1]}; they must come from "
            "the same model",
            argument="user_factors",
        )
    return users, items


def _check_side(factors: object, name: str, num_threads: int | None) -> MeasuredFactors:
    expected = "a float array, rows × factors, such as numpy.asarray(x, numpy.float32)"
    if not is_array(factors):
        raise InvalidDataError(f"{name} is {describe(factors)}; expected {expected}", argument=name)
    array = as_array(factors, name, expected)
    if array.ndim != 2 or array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise InvalidDataError(f"{name} is {describe(array)}; expected {expected}", argument=name)
    dtype = np.float64 if array.dtype.itemsize == 8 else np.float32
    values: AnyArray = read_only(np.ascontiguousarray(array, dtype))
    norms = np.empty(len(values))
    for_blocks(
        lambda start, stop: measure_rows(start, stop, values, norms),
        len(values),
        num_threads,
        _BLOCK,
    )
    not_finite = np.isnan(norms)
    if not_finite.any():
        raise InvalidDataError(
            f"{name}, row {int(not_finite.argmax())} is not finite; train again with a lower alpha "
            "or learning rate, or more regularization",
            argument=name,
        )
    return MeasuredFactors(values, norms)
