"""Names for the types that annotations share: arrays by what they hold, sparse matrices, labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing import Self

    import pandas as pd

__all__ = [
    "AnyArray",
    "Booleans",
    "CSRMatrix",
    "Floats",
    "Hashes",
    "Integers",
    "Items",
    "JSONValue",
    "Labels",
    "PathLike",
    "SparseInput",
]

#: An array of whatever dtype the caller has; only `np.ndarray` itself is known.
AnyArray: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
#: Item ids: columns of a matrix.
Items: TypeAlias = NDArray[np.int32]
Booleans: TypeAlias = NDArray[np.bool_]
Hashes: TypeAlias = NDArray[np.uint64]

#: Labels of users or items; pandas has no narrower type for an index of any hashable values.
Labels: TypeAlias = "pd.Index[Any]"

PathLike: TypeAlias = str | Path

#: What `json` reads and writes.
JSONValue: TypeAlias = "str | int | float | bool | None | list[JSONValue] | dict[str, JSONValue]"


class SparseInput(Protocol):
    """A SciPy sparse matrix or array of any format, as callers bring it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the stored values."""

    @property
    def format(self) -> str:
        """Three letters, such as "csr"."""

    @property
    def nnz(self) -> int:
        """Number of stored entries, explicit zeros included."""

    def tocsr(self) -> CSRMatrix:
        """Convert to CSR; duplicates are summed."""

    def tocoo(self) -> Any:
        """Convert to coordinates."""

    def copy(self) -> Self:
        """Copy the matrix with its arrays."""


class CSRMatrix(SparseInput, Protocol):
    """A SciPy matrix or array in compressed sparse row format."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and columns."""

    def astype(self, dtype: Any, copy: bool = ...) -> CSRMatrix:
        """Return it with values of another dtype."""

    def __getitem__(self, rows: Any) -> CSRMatrix:
        """Return some of the rows."""
