"""Checks of sparse matrices, and canonical CSR from any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from scipy import sparse

from ..errors import InvalidDataError
from ..kernels.lists import check_rows
from .threads import for_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "MAX_ITEMS",
    "canonical_csr",
    "check_pairs_once",
    "check_parts",
    "coordinates",
    "indptr_of",
    "place",
    "raise_duplicate",
    "refuse_mask",
    "run_checked",
    "sort_pairs",
    "sound",
    "summed_csr",
    "to_int32",
    "to_integers",
    "train_csr",
]

MAX_ITEMS = int(np.iinfo(np.int32).max)

#: Rows checked at once: a check is so quick that sharing fewer between threads costs more.
_CHECKED_ROWS = 20_000


def canonical_csr(matrix: Any, name: str, *, sum_duplicates: bool) -> Any:
    """Return `matrix` as a CSR whose rows ascend strictly, checked, without changing it.

    What is stored twice is summed, or refused where a sum has no meaning.
    """
    if not sparse.issparse(matrix):
        raise InvalidDataError(
            f"{name} is a {type(matrix).__name__}; expected a scipy sparse matrix, such as "
            "scipy.sparse.csr_matrix(x) of a dense array"
        )
    try:
        # A CSR, which is the common case, is checked below without a copy.
        csr = matrix if matrix.format == "csr" else sound(matrix)
    except InvalidDataError as error:
        raise InvalidDataError(f"{name}: {error}") from None
    if len(csr.shape) != 2:
        raise InvalidDataError(f"{name} has shape {csr.shape}; expected users × items")
    if csr.shape[1] > MAX_ITEMS:
        raise InvalidDataError(f"{name} has {csr.shape[1]} columns; at most {MAX_ITEMS} fit")
    if csr.format == "coo" and not sum_duplicates:
        check_pairs_once(csr)  # converting would sum what is stored twice
    if sum_duplicates and csr.format != "csr":
        csr = csr.astype(np.float64)  # bool and int8 would overflow in the sum
    csr = csr.tocsr()
    check_parts(csr, name)
    kind, row, entry = _check_rows(csr) or (0, 0, 0)
    if kind == 3:
        raise InvalidDataError(f"{name} is not a CSR: the bounds of row {row} are out of order")
    if kind == 2:
        raise InvalidDataError(
            f"row {row} of {name} names column {csr.indices[entry]}, but it has "
            f"{csr.shape[1]} columns"
        )
    n_stored = csr.indptr[-1]  # the arrays may be longer than what indptr covers
    if kind == 1 or n_stored < len(csr.data):
        parts = (csr.data[:n_stored], csr.indices[:n_stored], csr.indptr)
        csr = sparse.csr_matrix(parts, shape=csr.shape, copy=True)
    if kind == 1:
        csr.sort_indices()
        if sum_duplicates:
            csr = csr.astype(np.float64)
            csr.sum_duplicates()
        elif fault := _check_rows(csr):
            raise_duplicate(fault[1], csr.indices[fault[2]])
    if csr.data.dtype == np.float16 or csr.data.dtype.itemsize > 8:
        csr = csr.astype(np.float64)
    return csr


def train_csr(train: Any) -> Any:
    """Return training data as `canonical_csr`, its values finite."""
    matrix = canonical_csr(train, "the train matrix", sum_duplicates=True)
    finite = np.isfinite(matrix.data)
    if not finite.all():
        entry = int(np.flatnonzero(~finite)[0])
        row, column = place(matrix, entry)
        raise InvalidDataError(
            f"the train matrix holds {matrix.data[entry]} in row {row}, column {column}; expected "
            "finite numbers"
        )
    return matrix


def check_parts(csr: Any, name: str) -> None:
    """Refuse a CSR whose parts no kernel could read."""
    widths = (np.dtype(np.int32), np.dtype(np.int64))
    parts = (csr.data, csr.indices, csr.indptr)
    if (
        any(type(part) not in (np.ndarray, np.memmap) or part.ndim != 1 for part in parts)
        or csr.indices.dtype not in widths
        or csr.indptr.dtype not in widths
        or len(csr.indptr) != csr.shape[0] + 1
        or csr.indptr[0] != 0
        or len(csr.indices) != len(csr.data)
    ):
        raise InvalidDataError(
            f"{name} is not a CSR: its data, indices and indptr do not fit together; make it anew "
            "with scipy.sparse.csr_matrix"
        )
    if csr.data.dtype.kind not in "biuf":
        raise InvalidDataError(f"{name} holds {csr.data.dtype}; expected real numbers")


def _check_rows(csr: Any) -> tuple[int, int, int] | None:
    """Return (kind, row, entry) of what `check_rows` finds worst."""

    def check(first: int, last: int, fault: NDArray[np.int64]) -> None:
        check_rows(first, last, csr.indptr, csr.indices, csr.shape[1], fault)

    return run_checked(check, csr.shape[0])


def check_pairs_once(matrix: Any, users: Any = None, items: Any = None) -> None:
    """Raise if a (row, column) pair of a COO matrix is stored twice; labels name it."""
    order = np.lexsort((matrix.col, matrix.row))
    rows, columns = matrix.row[order], matrix.col[order]
    repeated = np.flatnonzero((rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1]))
    if len(repeated):
        row, column = rows[repeated[0]], columns[repeated[0]]
        raise_duplicate(
            row if users is None else repr(users[row]),
            column if items is None else repr(items[column]),
        )


def raise_duplicate(user: object, item: object) -> NoReturn:
    """Raise the error for an item that is in one list twice."""
    raise InvalidDataError(
        f"user {user} has item {item} twice in one list; remove the repetition, because a "
        "repeated hit would be counted twice"
    )


def place(csr: Any, entry: int) -> tuple[int, int]:
    """Return row and column of a stored entry of a CSR."""
    row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
    return row, int(csr.indices[entry])


def run_checked(
    work: Callable[[int, int, NDArray[np.int64]], None], total: int
) -> tuple[int, int, int] | None:
    """Run a checking kernel over blocks of rows.

    Returns (kind, row, place) of a fault of the highest kind, the first of them, or None.
    """
    faults: list[tuple[int, int, int]] = []

    def block(first: int, last: int) -> None:
        fault = np.zeros(3, np.int64)
        work(first, last, fault)
        if fault[0]:
            faults.append((int(fault[0]), int(fault[1]), int(fault[2])))

    for_blocks(block, total, block=_CHECKED_ROWS)
    return min(faults, key=lambda fault: (-fault[0], fault[1])) if faults else None


def indptr_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return row bounds from the number of entries of each row."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


def to_int32(indices: NDArray[Any]) -> NDArray[np.int32]:
    """Return column indices, which are in range, as contiguous int32."""
    return np.ascontiguousarray(indices, dtype=np.int32)  # in range: the columns were checked


def to_integers(values: ArrayLike, name: str, dimensions: int) -> NDArray[np.integer[Any]]:
    """Return an array of int32 or int64 with the given number of dimensions, or raise."""
    refuse_mask(values, name)
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if array.size == 0 and array.ndim == dimensions:
        array = array.astype(np.int64)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        wanted = "two-dimensional (lists × k, padded with -1)" if dimensions == 2 else "flat"
        raise InvalidDataError(
            f"{name} is an array of {array.dtype} with shape {array.shape}; expected a {wanted} "
            "array of integers"
        )
    if array.dtype == np.uint64 and array.size and array.max() > MAX_ITEMS:
        raise InvalidDataError(f"{name} holds {array.max()}; expected at most {MAX_ITEMS}")
    # Two dtypes are enough: a kernel is compiled for each that it meets.
    return np.ascontiguousarray(array, np.int32 if array.dtype == np.int32 else np.int64)


def refuse_mask(values: object, name: str) -> None:
    """Raise if an array is masked."""
    if isinstance(values, np.ma.MaskedArray):  # np.asarray would uncover what it hides
        raise InvalidDataError(f"{name} is a masked array; expected a plain one, see .filled()")


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
            _check_index_parts(matrix.data, matrix.indices, matrix.indptr)
            matrix = matrix.copy()  # the check cuts off what indptr does not cover, in place
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            _check_index_parts(matrix.data, matrix.row, matrix.col)
            if not len(matrix.data) == len(matrix.row) == len(matrix.col):
                raise ValueError("data, row and col have different lengths")
            for name, size in zip(("row", "col"), matrix.shape, strict=True):
                part = getattr(matrix, name)
                if len(part) and not (part.min() >= 0 and part.max() < size):
                    raise ValueError(f"{name} goes from {part.min()} to {part.max()}, of {size}")
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InvalidDataError(f"the matrix is damaged: {error}") from error
    return matrix


def _check_index_parts(data: Any, *indices: Any) -> None:
    if any(part.dtype.kind not in "iu" for part in indices):
        raise ValueError("its indices are not whole numbers")
    if any(isinstance(part, np.ma.MaskedArray) for part in (data, *indices)):
        raise ValueError("it holds masked arrays, see .filled()")


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
    if max(matrix.shape) > MAX_ITEMS:
        raise InvalidDataError(f"at most {MAX_ITEMS:,} users and items, found {matrix.shape}")
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
