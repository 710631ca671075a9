"""Checking the factors of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..kernels.exact import measure_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Measured = tuple[NDArray[Any], NDArray[np.float64]]

__all__ = ["check_factors", "read_only"]

#: Rows whose lengths are measured at once.
_ROWS = 10_000


def check_factors(
    user_factors: Any, item_factors: Any, num_threads: int | None = None
) -> tuple[_Measured, _Measured]:
    """Return both sides as the kernels take them, each with the length of every row.

    Parameters
    ----------
    user_factors, item_factors : ndarray of float, shape (n_users, f), (n_items, f)
        Of any layout. A half is widened to a single; what is in order is not copied.
    num_threads : int, optional
        One for each core by default.

    Raises
    ------
    InvalidDataError
        If they are something else, a row is not finite (it is named), or their widths differ.
    """
    users = _measured(user_factors, "user_factors", num_threads)
    items = _measured(item_factors, "item_factors", num_threads)
    widths = [factors.shape[1] for factors, _ in (users, items)]
    if widths[0] != widths[1]:
        raise InvalidDataError(
            f"user_factors have {widths[0]} columns, item_factors {widths[1]}; they must come from "
            "the same model"
        )
    return users, items


def _measured(factors: Any, name: str, num_threads: int | None) -> _Measured:
    if (
        not isinstance(factors, np.ndarray)
        or isinstance(factors, np.ma.MaskedArray)
        or factors.ndim != 2
        or factors.dtype.kind != "f"
        or factors.dtype.itemsize > 8
    ):
        found = (
            f"an array of {factors.dtype} with shape {factors.shape}"
            if type(factors) is np.ndarray
            else f"a {type(factors).__name__}"
        )
        raise InvalidDataError(f"{name} is {found}; expected a float array, rows × factors")
    wide = np.float64 if factors.dtype.itemsize == 8 else np.float32
    ready = read_only(np.ascontiguousarray(factors, wide))
    norms = np.empty(len(ready))
    for_blocks(
        lambda first, last: measure_rows(first, last, ready, norms), len(ready), num_threads, _ROWS
    )
    bad = np.isnan(norms)
    if bad.any():
        raise InvalidDataError(
            f"{name}, row {int(bad.argmax())} is not finite; train again with a lower alpha or "
            "learning rate, or more regularization"
        )
    return ready, norms


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written to.

    numba compiles a kernel anew for arrays that cannot, such as memory-mapped ones. If all are
    given to it as such, it does so once.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
