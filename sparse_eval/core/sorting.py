"""Sorting coordinates by pair, and entries within rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..kernels.rows import rank_keys
from .threads import for_blocks

if TYPE_CHECKING:
    from .types import AnyArray, Integers, Items

#: The number of entries that a thread moves at once: enough to rarely wait for the interpreter.
_BLOCK = 2**18


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

    for_blocks(take, len(order), block=_BLOCK)
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
    if keys.dtype == np.uint64:  # as int64 in the same order, so that only one kernel is compiled
        keys = (keys ^ np.uint64(2**63)).view(np.int64)
    bounds, positions = bounds.astype(np.int64, copy=False), np.empty(len(keys), np.int64)
    for_blocks(rank_keys, len(bounds) - 1, arguments=(bounds, keys, positions))
    return positions
