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

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the stored values."""

    @property
    def nnz(self) -> int:
        """The number of stored entries, explicit zeros included."""

    def tocsr(self) -> sparse.csr_matrix:
        """Convert to CSR, summing duplicates."""

    def tocoo(self) -> sparse.coo_matrix:
        """Convert to coordinates."""


class CSRMatrix(SparseInput, Protocol):
    """A SciPy matrix or array in CSR format, or a `LabelledMatrix`, for read access."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""

    @property
    def data(self) -> AnyArray:
        """The stored values, row by row."""

    @property
    def indices(self) -> AnyArray:
        """The column of each stored value."""

    @property
    def indptr(self) -> AnyArray:
        """Where each row starts and ends in `data` and `indices`."""
