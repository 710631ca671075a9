"""Sparse matrices of any format that are what they say they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InvalidDataError

__all__ = ["sound"]


def sound(matrix: Any) -> Any:
    """Return a sparse matrix that can be converted safely, without changing the given one.

    SciPy's conversions run in compiled code that trusts what it is given: an index out of range
    ends the process.

    Raises
    ------
    InvalidDataError
        If it is not two-dimensional, holds something else than real numbers, or its parts do not
        fit together.
    """
    if len(matrix.shape) != 2:
        raise InvalidDataError(f"expected a matrix of users × items, found {len(matrix.shape)}-D")
    if matrix.dtype.kind not in "buif":
        raise InvalidDataError(f"expected real numbers, found {matrix.dtype} values")
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            _check_parts(matrix.data, matrix.indices, matrix.indptr)
            matrix = matrix.copy()  # the check cuts off what indptr does not cover, in place
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            _check_parts(matrix.data, matrix.row, matrix.col)
            if not len(matrix.data) == len(matrix.row) == len(matrix.col):
                raise ValueError("data, row and col have different lengths")
            for name, size in zip(("row", "col"), matrix.shape, strict=True):
                part = getattr(matrix, name)
                if len(part) and not (part.min() >= 0 and part.max() < size):
                    raise ValueError(f"{name} goes from {part.min()} to {part.max()}, of {size}")
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InvalidDataError(f"the matrix is damaged: {error}") from error
    return matrix


def _check_parts(data: Any, *indices: Any) -> None:
    if any(part.dtype.kind not in "iu" for part in indices):
        raise ValueError("its indices are not whole numbers")
    if any(isinstance(part, np.ma.MaskedArray) for part in (data, *indices)):
        raise ValueError("it holds masked arrays, see .filled()")
