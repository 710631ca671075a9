"""Type aliases and protocols for annotations: arrays, sparse matrices and paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy import sparse

#: An array of any dtype.
AnyArray: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
#: Item ids, which are columns of a matrix.
Items: TypeAlias = NDArray[np.int32]
Booleans: TypeAlias = NDArray[np.bool_]
Hashes: TypeAlias = NDArray[np.uint64]

PathLike: TypeAlias = str | Path

#: Values that `json` reads and writes.
JSONValue: TypeAlias = "str | int | float | bool | list[JSONValue] | dict[str, JSONValue] | None"


class SparseInput(Protocol):
    """A SciPy sparse matrix or array of any format, or a `LabelledMatrix`."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: The number of stored entries, explicit zeros included.
    nnz: int

    def tocsr(self) -> sparse.csr_matrix:
        """Convert to CSR, summing duplicates."""

    def tocoo(self) -> sparse.coo_matrix:
        """Convert to coordinates."""


class CSRMatrix(SparseInput, Protocol):
    """A SciPy matrix or array in CSR format, or a `LabelledMatrix`, for read access."""

    shape: tuple[int, int]
    #: The stored values, row by row, and the column of each.
    data: AnyArray
    indices: AnyArray
    #: Where each row starts and ends in both.
    indptr: AnyArray
