"""Sparse matrices: checks of callers' inputs, conversion to canonical CSR, and sorting.

SciPy's conversions and our kernels run in compiled code that trusts its input: an index out of
range ends the process. So every matrix is checked before it is converted or read.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from scipy import sparse

from ..errors import InvalidDataError
from .arrays import SPARSE, as_array, describe, wrong_type
from .threads import for_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from .types import AnyArray, Booleans, CSRMatrix, Floats, Integers, Items

Entry = TypeVar("Entry", bound=np.generic)

MAX_ITEMS = int(np.iinfo(np.int32).max)

#: The kinds of faults that `_check_rows` distinguishes. A row is not sorted or contains a column
#: twice; a column is out of range; row bounds cross or lie outside the data.
UNSORTED, OUT_OF_RANGE, BAD_BOUNDS = 1, 2, 3

#: The number of rows in a checked block. Checks are so fast that sharing smaller blocks between
#: threads costs more than it gains.
_CHECKED_ROWS = 20_000

#: The number of entries that a thread moves at once: enough to rarely wait for the interpreter.
_GATHERED = 2**18


def canonical_csr(matrix: object, name: str, *, sum_duplicates: bool) -> sparse.csr_matrix:
    """Return `matrix` as a checked CSR with sorted, distinct columns in each row.

    Raises `InvalidDataError` if `matrix` is not a sparse matrix of real numbers with two
    dimensions, or is damaged.

    Parameters
    ----------
    matrix : scipy sparse matrix or array, or LabelledMatrix
        In any format. It is not modified; the result shares its arrays if possible.
    name : str
        How error messages refer to the matrix.
    sum_duplicates : bool
        Whether entries stored twice are summed. Otherwise they raise an error.
    """
    checked = _check_matrix(matrix, name)
    if checked.shape[1] > MAX_ITEMS:
        raise InvalidDataError(
            f"{name} has {checked.shape[1]} columns; at most {MAX_ITEMS} fit", argument=name
        )
    if checked.format == "csr":
        csr = checked.tocsr()
    else:
        convertible = _checked_copy(checked, name)
        if sum_duplicates:
            convertible = convertible.astype(np.float64)  # bool and int8 would overflow in the sum
        elif checked.format == "coo":
            sort_distinct(convertible.row, convertible.col)  # converting would sum duplicates
        csr = convertible.tocsr()
    check_csr_arrays(csr, name)
    rows = csr.shape[0], csr.indptr, csr.indices, csr.shape[1]
    kind, row, entry = find_fault(_check_rows, *rows) or (0, 0, 0)
    if kind == BAD_BOUNDS:
        raise InvalidDataError(
            f"{name} is not a valid CSR matrix: indptr decreases at row {row}. Rebuild it with "
            "scipy.sparse.csr_matrix",
            argument=name,
            row=row,
        )
    if kind == OUT_OF_RANGE:
        raise InvalidDataError(
            f"row {row} of {name} names column {csr.indices[entry]}, but it has "
            f"{csr.shape[1]} columns",
            argument=name,
            row=row,
            column=csr.indices[entry],
        )
    n_stored = csr.indptr[-1]  # the arrays may be longer than what indptr covers
    if kind == UNSORTED or n_stored < len(csr.data):
        arrays = (csr.data[:n_stored], csr.indices[:n_stored], csr.indptr)
        csr = sparse.csr_matrix(arrays, shape=csr.shape, copy=True)
    if kind == UNSORTED:
        csr.sort_indices()
        if sum_duplicates:
            csr = csr.astype(np.float64)
            csr.sum_duplicates()
        elif fault := find_fault(_check_rows, csr.shape[0], csr.indptr, csr.indices, csr.shape[1]):
            raise_repeated_item(fault[1], csr.indices[fault[2]])
    return csr


def _check_rows(
    first: int, last: int, indptr: AnyArray, columns: AnyArray, n_columns: int, fault: Integers
) -> None:
    """Find the first fault of the highest kind in some rows of a CSR, for `find_fault`."""
    bounds = indptr[first : last + 1]
    crossed = (bounds[1:] < bounds[:-1]) | (bounds[1:] > len(columns))
    if crossed.any() or bounds[0] < 0:
        fault[:2] = BAD_BOUNDS, first + np.argmax(crossed)
        return
    begin = bounds[0]
    columns = columns[begin : bounds[-1]]
    unsigned = columns.view(f"u{columns.itemsize}")  # negative columns become the largest
    if unsigned.max(initial=0) >= n_columns:
        kind, entry = OUT_OF_RANGE, begin + np.argmax(unsigned >= n_columns)
    else:
        falls = np.zeros(len(columns) + 1, bool)
        np.less_equal(columns[1:], columns[:-1], out=falls[1:-1])
        falls[bounds - begin] = False  # from row to row
        if not falls.any():
            return
        kind, entry = UNSORTED, begin + np.argmax(falls)
    fault[:] = kind, first + np.searchsorted(bounds, entry, "right") - 1, entry


def training_csr(train: object, name: str = "the train matrix") -> sparse.csr_matrix:
    """Return training data as `canonical_csr` does; the values must be finite."""
    matrix = canonical_csr(train, name, sum_duplicates=True)
    finite = np.isfinite(matrix.data)
    if not finite.all():
        check_entries(matrix, finite, f"the value of {name}", "a finite number", name)
    return matrix


def check_entries(
    matrix: Any, valid: Booleans, what: str, expected: str, argument: str | None = None
) -> None:
    """Raise `InvalidDataError` about the first invalid value of a CSR or COO."""
    if valid.all():
        return
    entry, coo = int(np.argmin(valid)), matrix.tocoo()
    row, column = int(coo.row[entry]), int(coo.col[entry])
    raise InvalidDataError(
        f"{what} in row {row}, column {column} is {matrix.data[entry]}; expected {expected}",
        argument=argument,
        row=row,
        column=column,
    )


def sort_pairs(rows: AnyArray, columns: AnyArray) -> tuple[Items, AnyArray, Integers]:
    """Sort coordinates by row, then by column, then by input order.

    Parameters
    ----------
    rows, columns : ndarray of int
        At least 0.

    Returns
    -------
    order : ndarray of int32, shape (n,)
        The position of each entry in the input.
    columns : ndarray, shape (n,)
        The column of each entry.
    starts : ndarray of int64, shape (n_pairs,)
        Where each distinct pair starts.
    """
    order = _order_of(columns)
    rows = gather(rows, order)
    by_row = _order_of(rows)
    order, rows = gather(order, by_row), gather(rows, by_row)
    columns = gather(columns, order)
    differ = np.ones(len(rows), bool)
    differ[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    return order, columns, np.flatnonzero(differ)


def _order_of(codes: AnyArray) -> Items:
    """Return the stable order of codes, by counting if the largest code is not too large."""
    n_codes = int(codes.max(initial=-1)) + 1
    if n_codes > 2**20 + 4 * len(codes):
        return np.argsort(codes, kind="stable").astype(np.int32)
    return group_rows(codes, n_codes)[1]


def group_rows(rows: AnyArray, n_rows: int) -> tuple[Integers, Items]:
    """Return where the entries of each row start and end, and the order that groups them.

    Entries of a row stay in their order.
    """
    entries = np.arange(len(rows), dtype=np.int32)
    # A conversion to CSR counts the rows, in a fifth of the time of a sort.
    grouped = sparse.csr_matrix(
        (np.ones(len(rows), bool), (rows, entries)), shape=(n_rows, len(rows))
    )
    return grouped.indptr.astype(np.int64), grouped.indices


def gather(array: AnyArray, order: AnyArray) -> AnyArray:
    """Return ``array[order]``, computed by several threads; indices must be in range."""
    result = np.empty(len(order), array.dtype)

    def take(first: int, last: int) -> None:
        # NumPy needs no buffer if it does not check the indices.
        np.take(array, order[first:last], out=result[first:last], mode="clip")

    for_blocks(take, len(order), block=_GATHERED)
    return result


def order_within(bounds: Integers, keys: AnyArray) -> Integers:
    """Return the position of each entry in its row after sorting the row by keys.

    Parameters
    ----------
    bounds : ndarray of int, shape (n_rows + 1,)
        Where the entries of each row start and end.
    keys : ndarray of int64 or uint64
        Entries of a row with equal keys stay in their order.
    """
    from ..kernels.rows import rank_keys  # reading files need not wait for numba

    if keys.dtype == np.uint64:  # as int64 in the same order, so that only one kernel is compiled
        keys = (keys ^ np.uint64(2**63)).view(np.int64)
    bounds, positions = bounds.astype(np.int64, copy=False), np.empty(len(keys), np.int64)
    for_blocks(rank_keys, len(bounds) - 1, arguments=(bounds, keys, positions))
    return positions


def summed_csr(
    rows: AnyArray, columns: AnyArray, values: AnyArray, shape: tuple[int, int]
) -> CSRMatrix:
    """Build a sorted float64 CSR from coordinates, summing duplicates and keeping explicit zeros.

    The duplicates of a pair are added in ascending order of their values, so that the sums do not
    depend on the order of the input.

    Raises `InvalidDataError` if a sum overflows float64.
    """
    bounds, columns, values, starts, _ = sorted_entries(rows, columns, values, shape)
    return sorted_csr(bounds, columns, values, shape, starts)


def sorted_entries(
    rows: AnyArray, columns: AnyArray, values: AnyArray, shape: tuple[int, int]
) -> tuple[Integers, AnyArray, AnyArray, Integers, Items]:
    """Sort entries by pair of row and column, and within a pair by value.

    Returns the bounds of the rows, the columns, the values, where each pair starts, and the order
    of the entries.
    """
    order, columns, starts = sort_pairs(rows, columns)
    values = gather(values, order)
    descends = values[1:] < values[:-1]
    descends[starts[1:] - 1] = False  # from one pair to the next
    if descends.any():
        sizes = np.diff(starts, append=len(values))
        repeated = np.flatnonzero(np.repeat(sizes > 1, sizes))
        pairs = np.repeat(np.arange(len(starts)), sizes)[repeated]
        moved = repeated[np.lexsort((values[repeated], pairs))]
        values[repeated], order[repeated] = values[moved], order[moved]
    bounds = indptr_from_counts(np.bincount(rows, minlength=shape[0]))
    return bounds, columns, values, starts, order


def sorted_csr(
    bounds: Integers,
    columns: AnyArray,
    values: AnyArray,
    shape: tuple[int, int],
    starts: Integers | None = None,
    chosen: Booleans | None = None,
) -> CSRMatrix:
    """Build a float64 CSR from entries that are sorted by pair, and within a pair by value.

    Raises `InvalidDataError` if a sum overflows float64.

    Parameters
    ----------
    bounds : ndarray of int, shape (n_rows + 1,)
        Where the entries of each row start and end.
    columns, values : ndarray, shape (n,)
        The entries.
    starts : ndarray of int64, shape (n_pairs,), optional
        Where the entries of each distinct pair start. The entries of a pair are summed. By default
        each entry is a pair.
    chosen : ndarray of bool, shape (n,), optional
        Which entries to take; by default all.
    """
    if starts is None or len(starts) == len(values):
        starts = np.empty(0, np.int64)
    if chosen is not None:
        before = indptr_from_counts(chosen)
        bounds, columns, values = before[bounds], columns[chosen], values[chosen]
        firsts = before[starts]
        starts = firsts[np.append(firsts[1:], len(values)) > firsts]  # pairs without one are gone
    if len(starts):
        bounds, columns = np.searchsorted(starts, bounds), columns[starts]
    if 0 < len(starts) < len(values):
        with np.errstate(over="ignore"):
            values = np.add.reduceat(values, starts)
        finite = np.isfinite(values)
        if not finite.all():
            first = int(np.argmin(finite))
            row = int(np.searchsorted(bounds, first, side="right")) - 1
            raise InvalidDataError(
                f"row {row}, column {columns[first]}: the sum of the values of this pair "
                "is beyond float64; scale the values down",
                row=row,
                column=columns[first],
            )
    csr: CSRMatrix = sparse.csr_matrix((values, columns, bounds), shape=shape, dtype=np.float64)
    return csr


def without_entries(matrix: CSRMatrix) -> CSRMatrix:
    """Return an empty CSR of the same shape and dtypes."""
    parts = (matrix.data[:0], matrix.indices[:0], np.zeros_like(matrix.indptr))
    empty: CSRMatrix = sparse.csr_matrix(parts, shape=matrix.shape)
    return empty


def coordinates(matrix: object) -> tuple[Items, Items, Floats, tuple[int, int]]:
    """Return the rows, columns, values and shape of a sparse matrix or array of any format.

    Explicit zeros and duplicates are kept. `matrix` is not modified.

    Raises `InvalidDataError` if `matrix` is not a sparse matrix of real numbers with two
    dimensions, is damaged, is too large, or holds a negative or non-finite value.
    """
    checked = _checked_copy(_check_matrix(matrix, "the matrix"), "the matrix")
    if max(checked.shape) > MAX_ITEMS:
        raise InvalidDataError(f"at most {MAX_ITEMS:,} users and items, found {checked.shape}")
    coo = checked.tocoo()
    values = coo.data.astype(np.float64)
    valid = np.isfinite(values) & (values >= 0)
    check_entries(coo, valid, "the value", "a finite number of at least 0")
    return coo.row.astype(np.int32), coo.col.astype(np.int32), values, checked.shape


def added(*matrices: Any) -> CSRMatrix:
    """Return the sum of canonical matrices as float64, with explicit zeros; shapes may differ."""
    parts = [matrix.tocoo() for matrix in matrices]
    entries = zip(*((part.row, part.col, part.data) for part in parts), strict=True)
    rows, columns, values = map(np.concatenate, entries)
    n_users, n_items = map(max, zip(*(part.shape for part in parts), strict=True))
    return summed_csr(rows, columns, values.astype(np.float64), (n_users, n_items))


def indptr_from_counts(counts: NDArray[np.integer] | Booleans) -> Integers:
    """Return the row bounds of a CSR from the number of entries in each row."""
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


def take_rows(
    indptr: Integers, rows: Integers, data: NDArray[Entry], limit: int | None = None
) -> tuple[Integers, NDArray[Entry]]:
    """Return `indptr` and `data` of the given rows of a CSR, at most `limit` entries of each."""
    counts = np.diff(indptr)[rows]
    if limit is not None:
        counts = np.minimum(counts, limit)
    bounds = indptr_from_counts(counts)
    return bounds, data[np.arange(bounds[-1]) + np.repeat(indptr[rows] - bounds[:-1], counts)]


def bounds_of(indptr: AnyArray, first: int, last: int) -> Integers:
    """Return the part of `indptr` of some rows of a CSR; rows beyond its end are empty."""
    bounds = indptr[min(first, len(indptr) - 1) : last + 1]
    n_missing = last - first + 1 - len(bounds)
    return np.append(bounds, np.full(n_missing, bounds[-1])) if n_missing else bounds


def find_entries(
    rows: Integers, columns: AnyArray, indptr: Integers, stored: AnyArray, n_columns: int
) -> Integers:
    """Return the index of the CSR entry of each pair of row and column, -1 if there is none.

    The columns of the CSR, `stored`, ascend within a row.
    """
    owners = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    keys = np.append(owners * n_columns + stored, -1)  # ascending, except the last
    wanted = rows * n_columns + columns
    places = np.searchsorted(keys[:-1], wanted)
    return np.where(keys[places] == wanted, places, -1)


def as_int32(indices: AnyArray) -> Items:
    """Return indices that were checked to be in range as contiguous int32."""
    return np.ascontiguousarray(indices, dtype=np.int32)


def integer_array(values: ArrayLike, name: str, dimensions: int) -> NDArray[np.int32 | np.int64]:
    """Return `values` as a contiguous array of int32 or int64, or raise `InvalidDataError`.

    It is limited to these two dtypes because kernels are compiled for each dtype.
    """
    expected = "a flat array of integers"
    if dimensions == 2:
        expected = (
            "a two-dimensional array of integers (lists × k, padded with -1); "
            "Rankings.from_scores(x) takes scores, and Rankings.from_frame a table of ids"
        )
    array = as_array(values, name, expected)
    if array.size == 0 and array.ndim == dimensions:
        array = array.astype(np.int64)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        is_mask = dimensions == 1 and array.dtype.kind == "b"
        hint = "numpy.flatnonzero(x) of a mask is one" if is_mask else None
        message = f"{name} is {describe(array)}; expected {expected}"
        raise InvalidDataError(message, argument=name, hint=hint)
    if array.dtype == np.uint64 and array.size and array.max() > MAX_ITEMS:
        raise InvalidDataError(
            f"{name} holds {array.max()}; expected at most {MAX_ITEMS}", argument=name
        )
    return np.ascontiguousarray(array, np.int32 if array.dtype == np.int32 else np.int64)


def row_numbers(values: ArrayLike, name: str, n: int, kind: str) -> Integers:
    """Return row numbers as int64, or raise `InvalidDataError` if one is out of range.

    There are `n` rows. `kind` is their name in the message, such as users or items.
    """
    array = integer_array(values, name, 1)
    outside = (array < 0) | (array >= n)
    if outside.any():
        position = int(outside.argmax())
        raise InvalidDataError(
            f"{name}[{position}] is {array[position]}, but there are {n} {kind} (0 to {n - 1})",
            argument=name,
        )
    return array.astype(np.int64, copy=False)


def plain_matrix(given: Any) -> Any:
    """Return the matrix of a `LabelledMatrix`, and any other value unchanged."""
    return given.csr if hasattr(type(given), "csr") else given


def _check_matrix(matrix: object, name: str) -> Any:
    """Return a sparse matrix with two dimensions, in a dtype that SciPy and numba support."""
    checked = plain_matrix(matrix)
    if not sparse.issparse(checked):
        raise wrong_type(matrix, name, SPARSE)
    if len(checked.shape) != 2:
        raise InvalidDataError(
            f"{name}: expected a matrix of users × items, found {len(checked.shape)}-D",
            argument=name,
        )
    data = getattr(checked, "data", None)
    if isinstance(data, np.ndarray) and data.dtype.kind in "iuf":  # others raise later
        usual = data.dtype.newbyteorder("=")
        if usual.kind == "f" and usual.itemsize not in (4, 8):
            usual = np.dtype(np.float64)
        if usual != data.dtype:
            # Not its `copy` or `astype`: SciPy would reject the dtype, or sum duplicates.
            checked = copy(checked)
            checked.data = data.astype(usual)
    return checked


def _checked_copy(matrix: Any, name: str) -> Any:
    """Return a matrix that can be converted safely: a copy if the check would modify it."""
    _check_real(matrix.dtype, name)
    try:
        if matrix.format in ("dia", "dok", "lil"):
            matrix = matrix.tocsr()
        is_coo = matrix.format == "coo"
        indices = (matrix.row, matrix.col) if is_coo else (matrix.indices, matrix.indptr)
        if any(array.dtype.kind not in "iu" for array in indices):
            raise ValueError("its indices are not whole numbers")
        if any(isinstance(array, np.ma.MaskedArray) for array in (matrix.data, *indices)):
            raise ValueError("it contains masked arrays, see .filled()")
        if is_coo:  # the constructor checks the indices
            matrix = sparse.coo_matrix((matrix.data, indices), shape=matrix.shape)
        else:
            if (matrix.indptr[1:] < matrix.indptr[:-1]).any():  # unseen by SciPy if one is < 0
                raise ValueError("its indptr is not ascending")
            matrix = matrix.copy()  # the check prunes what indptr does not cover, in place
            matrix.check_format(full_check=True)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise InvalidDataError(f"{name} is damaged: {error}", argument=name) from error
    return matrix


def _check_real(dtype: np.dtype[Any], name: str) -> None:
    if dtype.kind not in "biuf":
        raise InvalidDataError(f"{name} holds {dtype}; expected real numbers", argument=name)


def check_csr_arrays(csr: CSRMatrix, name: str) -> None:
    """Raise `InvalidDataError` if kernels cannot read the arrays of a CSR.

    The elements of the arrays are not read.
    """
    data, indices, indptr = csr.data, csr.indices, csr.indptr
    if not (
        {type(data), type(indices), type(indptr)} <= {np.ndarray, np.memmap}
        and data.ndim == indices.ndim == indptr.ndim == 1
        and {indices.dtype, indptr.dtype} <= {np.dtype("i4"), np.dtype("i8")}
        and len(indptr) == csr.shape[0] + 1
        and indptr[0] == 0
        and len(indices) == len(data)
    ):
        raise InvalidDataError(
            f"{name} is not a valid CSR matrix: data, indices and indptr are inconsistent. Rebuild "
            "it with scipy.sparse.csr_matrix",
            argument=name,
        )
    _check_real(data.dtype, name)


def sort_distinct(
    rows: AnyArray, columns: AnyArray, users: Any = None, items: Any = None
) -> tuple[Items, AnyArray]:
    """Return the order that sorts pairs by row and column, and the columns in it.

    Raises an error if a pair is there twice; labels name it.
    """
    order, ordered, starts = sort_pairs(rows, columns)
    if len(starts) < len(order):
        entry = order[starts[np.argmax(np.diff(starts, append=len(order)) > 1)]]
        row, column = int(rows[entry]), int(columns[entry])
        raise_repeated_item(users[row] if users else row, items[column] if items else column)
    return order, ordered


def raise_repeated_item(user: Any, item: Any) -> NoReturn:
    """Raise the error about an item that occurs twice in a list."""
    user, item = (x.item() if isinstance(x, np.generic) else x for x in (user, item))
    raise InvalidDataError(
        f"user {user!r} has item {item!r} twice in one list; remove the repetition, because a "
        "repeated hit would be counted twice",
        user=user,
    )


def find_fault(
    check: Callable[..., None], n_rows: int, *arguments: Any
) -> tuple[int, int, int] | None:
    """Run a checking kernel over blocks of rows, shared between threads.

    Parameters
    ----------
    check : callable
        Called as ``check(first, last, *arguments, fault)`` for each block of rows. Writes (kind,
        row, entry) to `fault` if it finds a fault; kind 0 is none.

    Returns
    -------
    tuple of int or None
        The first fault of the highest kind as (kind, row, entry).
    """
    faults: list[tuple[int, int, int]] = []

    def check_block(first: int, last: int) -> None:
        fault = np.zeros(3, np.int64)
        check(first, last, *arguments, fault)
        if fault[0]:
            faults.append((int(fault[0]), int(fault[1]), int(fault[2])))

    for_blocks(check_block, n_rows, block=_CHECKED_ROWS)
    return min(faults, key=lambda fault: (-fault[0], fault[1])) if faults else None


def are_in(keys: Integers, ascending: Integers) -> Booleans:
    """Return whether each key is in an ascending array."""
    if not len(ascending):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    found: Booleans = ascending[places] == keys
    return found
