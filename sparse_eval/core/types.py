"""Type aliases and protocols that annotations share: arrays, sparse matrices, paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing import Self

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
    """A SciPy sparse matrix or array of any format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the stored values."""

    @property
    def format(self) -> str:
        """The name of the format, such as "csr"."""

    @property
    def nnz(self) -> int:
        """The number of stored entries, explicit zeros included."""

    def tocsr(self) -> CSRMatrix:
        """Convert to CSR, summing duplicates."""

    def tocoo(self) -> Any:
        """Convert to coordinates."""

    def copy(self) -> Self:
        """Copy the matrix and its arrays."""


class CSRMatrix(SparseInput, Protocol):
    """A SciPy matrix or array in compressed sparse row format."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and columns."""

    def astype(self, dtype: Any, copy: bool = ...) -> CSRMatrix:
        """Convert the values to another dtype."""

    def max(self, axis: int | None = ...) -> Any:
        """Return the largest value, of the matrix or along an axis."""

    def sort_indices(self) -> None:
        """Sort the columns of each row, in place."""

    def eliminate_zeros(self) -> None:
        """Remove explicit zeros, in place."""

    def sum_duplicates(self) -> None:
        """Sum entries of the same row and column, in place."""

    def __getitem__(self, rows: Any) -> CSRMatrix:
        """Return a selection of the rows."""
