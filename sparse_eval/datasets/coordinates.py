"""From coordinates to canonical CSR, so that the order of the rows never shows in the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sparse_eval.errors import InvalidDataError
from sparse_eval.formats import sound

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["coordinates", "sort_pairs", "summed_csr"]

_MAX_SIDE = int(np.iinfo(np.int32).max)


def sort_pairs(
    rows: NDArray[Any], columns: NDArray[Any], n_columns: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return an order that sorts coordinates by pair, and where each distinct pair begins in it.

    Within a pair the order is arbitrary.
    """
    keys = rows.astype(np.int64) * n_columns + columns  # one key sorts faster than np.lexsort's two
    order = np.argsort(keys)
    return order, np.flatnonzero(np.diff(keys[order], prepend=-1) > 0)


def summed_csr(
    rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any], shape: tuple[int, int]
) -> sparse.csr_matrix[np.float64]:
    """Build a sorted CSR matrix from coordinates: duplicates summed, explicit zeros kept.

    The duplicates of a pair are added in ascending order of their values: floating-point sums
    then do not depend on the order of the rows.

    Raises
    ------
    InvalidDataError
        When a sum is beyond float64.
    """
    order, starts = sort_pairs(rows, columns, shape[1])
    if len(starts) < len(values):
        order = np.lexsort((values, columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    if len(starts) < len(values):
        with np.errstate(over="ignore"):
            values = np.add.reduceat(values, starts)
        rows, columns = rows[starts], columns[starts]
        if not np.isfinite(values).all():
            at = int(np.argmin(np.isfinite(values)))
            raise InvalidDataError(
                f"row {rows[at]}, column {columns[at]}: the sum of the values of this pair is "
                "beyond float64; scale the values down"
            )
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))])
    return sparse.csr_matrix((values, columns, indptr), shape=shape, dtype=np.float64)


def coordinates(
    matrix: Any,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float64], tuple[int, int]]:
    """Return rows, columns, values and shape of a sparse matrix or array of any format.

    Explicit zeros and duplicates are kept, and the matrix is not changed.

    Raises
    ------
    InvalidDataError
        When it is not two-dimensional, is damaged (an index out of range), too large, or holds
        a negative or non-finite value.
    """
    matrix = sound(matrix)
    if max(matrix.shape) > _MAX_SIDE:
        raise InvalidDataError(f"at most {_MAX_SIDE:,} users and items, found {matrix.shape}")
    coo = matrix.tocoo()
    rows, columns = coo.row.astype(np.int32), coo.col.astype(np.int32)
    values = coo.data.astype(np.float64)
    fine = np.isfinite(values) & (values >= 0)
    if not fine.all():
        at = int(np.argmin(fine))
        raise InvalidDataError(
            f"row {rows[at]}, column {columns[at]}: the value is {values[at]}, expected a finite "
            "number that is not negative"
        )
    return rows, columns, values, (int(matrix.shape[0]), int(matrix.shape[1]))
