"""Arrays and CSR matrices that stay on disk in ``.npy`` files; sparse matrices read from files."""

from __future__ import annotations

import mmap
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core import saved_arrays
from ..core.arrays import SPARSE, wrong_type
from ..core.atomic_files import as_input
from ..core.csr import bounds_of, canonical_csr, check_csr_arrays, plain_matrix
from ..core.saved_arrays import map_array
from ..errors import InvalidDataError, InvalidFileError
from .input_files import naming

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..core.types import AnyArray, CSRMatrix, PathLike


def open_array(path: Path) -> AnyArray:
    """Return the memory-mapped array of a ``.npy`` file, or raise `InvalidFileError`."""
    with reading_npz(path, "an array saved by numpy.save"):
        return map_array(path)


def open_csr(folder: PathLike) -> CSRMatrix:
    """Return a CSR matrix that stays on disk.

    Raises `InvalidFileError` if a file is missing or cannot be read, or the parts do not fit
    together.

    Parameters
    ----------
    folder : str or Path
        With its parts in ``data.npy``, ``indices.npy``, ``indptr.npy`` and ``shape.npy``.
    """
    folder = as_input(folder)
    parts = {name: open_array(folder / f"{name}.npy") for name in ("data", "indices", "indptr")}
    shape = open_array(folder / "shape.npy").tolist()
    with reading_npz(folder / "shape.npy", "two whole numbers, of users and of items"):
        n_users, n_items = shape
        # SciPy allocates indptr for this shape, so it may not exceed the stored one.
        matrix = sparse.csr_matrix((min(n_users, parts["indptr"].size), n_items))
    for name, part in parts.items():  # SciPy's constructor would copy some of them
        setattr(matrix, name, part)
    with naming(folder):
        return sliceable_csr(matrix, "the matrix")


def sliceable_csr(matrix: object, name: str, *, sum_duplicates: bool = True) -> CSRMatrix:
    """Return a CSR whose rows can be sliced, without reading its entries.

    Other formats are converted; entries stored twice are then summed, or refused.
    """
    plain = plain_matrix(matrix)
    if not sparse.issparse(plain):
        raise wrong_type(matrix, name, SPARSE)
    csr: CSRMatrix = plain
    if plain.format != "csr":
        csr = canonical_csr(plain, name, sum_duplicates=sum_duplicates)
    check_csr_arrays(csr, name)
    if not 0 <= csr.indptr[-1] <= len(csr.data):
        raise InvalidDataError(
            f"{name} is not a valid CSR matrix: indptr counts {csr.indptr[-1]} entries, but data "
            f"has {len(csr.data)}. Rebuild it with scipy.sparse.csr_matrix",
            argument=name,
        )
    return csr


def slice_rows(matrix: CSRMatrix, first: int, last: int) -> CSRMatrix:
    """Return the rows from `first` to `last`; those beyond the end are empty."""
    indptr = bounds_of(matrix.indptr, first, last).astype(np.int64, copy=False)
    if (indptr[1:] < indptr[:-1]).any():
        row = first + int((indptr[1:] < indptr[:-1]).argmax())
        raise InvalidDataError(
            f"the matrix is not a valid CSR matrix: indptr decreases at row {row}. Rebuild it with "
            "scipy.sparse.csr_matrix",
            row=row,
        )
    bounds = slice(int(indptr[0]), int(indptr[-1]))
    parts = (matrix.data[bounds], matrix.indices[bounds], indptr - indptr[0])
    rows: CSRMatrix = sparse.csr_matrix(parts, shape=(last - first, matrix.shape[1]))
    return rows


def release(*sides: object) -> None:
    """Release the resident pages of memory-mapped arrays and matrices (MADV_DONTNEED).

    Mapped pages count as memory of the process until another process needs it. Without this, all
    data read would count against the limit.
    """
    for side in map(plain_matrix, sides):
        arrays = (side.data, side.indices, side.indptr) if sparse.issparse(side) else (side,)
        for array in arrays:
            while array is not None:  # or what it is a view of
                base = getattr(array, "base", None)
                # Windows has no madvise, and takes the pages back by itself.
                is_mapped = isinstance(base, mmap.mmap) and getattr(array, "mode", "") == "r"
                if base is not None and is_mapped and hasattr(base, "madvise"):
                    base.madvise(mmap.MADV_DONTNEED)  # it is read again if it is needed again
                array = base


def read_sparse(path: Path) -> Any:
    """Return the CSR, CSC or COO matrix in a file, or raise `InvalidFileError`."""
    with reading_npz(path, "a matrix saved by scipy.sparse.save_npz"), path.open("rb") as file:
        return saved_arrays.read_sparse(file)


@contextmanager
def reading_npz(path: Path, expected: str) -> Iterator[None]:
    """Turn any error from reading an npz file into `InvalidFileError`."""
    with naming(path):
        try:
            yield
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InvalidFileError(f"expected {expected} ({error})", path) from error
