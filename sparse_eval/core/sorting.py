"""Sorting coordinates by pair, and entries within rows, by packing all that decides into integers.

NumPy sorts 64-bit integers five times as fast as it finds the order that sorts them, and that order
is in the low bits of the integers here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .threads import for_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .types import AnyArray, Booleans, Hashes, Integers, Items

#: What fits into a positive int64.
_BITS = 63

#: The number of entries that a thread works on at once: few enough for its cache, and enough to
#: wait seldom for the interpreter's lock.
_BLOCK = 2**18


class SortedPairs(NamedTuple):
    """Coordinates in the order of rows, then columns, then as they came.

    Attributes
    ----------
    order : ndarray of int64, shape (n,)
        The number of each entry among the given ones.
    columns : ndarray, shape (n,)
        The column of each entry.
    starts : ndarray of int64, shape (n_pairs,)
        Where each distinct pair starts.
    """

    order: Integers
    columns: NDArray[Any]
    starts: Integers


def sort_pairs(rows: AnyArray, columns: AnyArray, n_columns: int) -> SortedPairs:
    """Sort coordinates by pair; `rows` and `columns` are integers of at least 0."""
    n_rows = int(rows.max(initial=0)) + 1
    for_column, for_entry = _bits(n_columns), _bits(len(rows))
    if _bits(n_rows) + for_column + for_entry > _BITS:
        order = np.lexsort((columns, rows))
        rows, columns = rows[order], columns[order]
        differ = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        return SortedPairs(order, columns, np.flatnonzero(np.append(True, differ)))
    keys = np.empty(len(rows), np.int64)
    new = np.empty(len(rows), bool)
    sorted_columns = np.empty(len(rows), columns.dtype)

    def pack(first: int, last: int) -> None:
        part = keys[first:last]
        part[:] = rows[first:last]
        part <<= for_column
        part |= columns[first:last]
        part <<= for_entry
        part |= np.arange(first, last)

    def unpack(first: int, last: int) -> None:
        pairs = keys[max(first - 1, 0) : last] >> for_entry
        new[first + (first == 0) : last] = pairs[1:] != pairs[:-1]
        sorted_columns[first:last] = pairs[-(last - first) :] & ((1 << for_column) - 1)

    for_blocks(pack, len(keys), block=_BLOCK)
    keys.sort()
    for_blocks(unpack, len(keys), block=_BLOCK)
    new[:1] = True
    keys &= (1 << for_entry) - 1
    return SortedPairs(keys, sorted_columns, np.flatnonzero(new))


def group_rows(rows: Items, n_rows: int) -> tuple[Integers, Items]:
    """Return where the entries of each row start and end, and the order that groups them.

    Entries of a row stay in their order.
    """
    entries = np.arange(len(rows), dtype=np.int32)
    # A conversion to CSR counts the rows: a fifth of the time of a sort.
    grouped = sparse.csr_matrix(
        (np.ones(len(rows), bool), (rows, entries)), shape=(n_rows, len(rows))
    )
    return grouped.indptr.astype(np.int64), grouped.indices


def order_within(bounds: Integers, keys: AnyArray) -> Integers:
    """Return the position of each entry among those of its row, sorted by their keys.

    Parameters
    ----------
    bounds : ndarray of int, shape (n_rows + 1,)
        Where the entries of each row start and end.
    keys : ndarray of int64 or uint64
        Entries of a row with equal keys stay in their order.
    """
    positions = np.empty(len(keys), np.int64)

    def rank(first: int, last: int) -> None:
        begin, end = bounds[first], bounds[last]
        if begin == end:
            return
        sizes = np.diff(bounds[first : last + 1])
        part = keys[begin:end]
        offsets = part.view(np.uint64) - part.min().view(np.uint64)
        for_entry = _bits(end - begin)
        # Low bits of the keys for which there is no room are compared where the rest is equal.
        for_key = int(offsets.max()).bit_length()
        dropped = max(0, _bits(last - first) + for_key + for_entry - 64)
        packed = np.repeat(np.arange(last - first, dtype=np.uint64), sizes)
        packed <<= np.uint64(for_key - dropped)
        packed |= offsets >> np.uint64(dropped)
        packed <<= np.uint64(for_entry)
        packed |= np.arange(end - begin, dtype=np.uint64)
        packed.sort()
        order = (packed & np.uint64((1 << for_entry) - 1)).view(np.int64)
        if dropped:
            packed >>= np.uint64(for_entry)
            _order_ties(order, packed[1:] == packed[:-1], offsets)
        order += begin
        positions[order] = np.arange(begin, end) - np.repeat(bounds[first:last], sizes)

    n_rows = len(bounds) - 1
    for_blocks(rank, n_rows, block=max(1, n_rows * _BLOCK // max(len(keys), 1)))
    return positions


def move_by_value(starts: Integers, values: NDArray[Any]) -> tuple[Integers, Integers]:
    """Return which entries have to move where for those of each pair to ascend by value.

    `starts` says where the entries of each pair start. Most pairs have one entry, or equal ones,
    and stay where they are.
    """
    descends = values[1:] < values[:-1]
    descends[starts[1:] - 1] = False  # from one pair to the next
    entries = np.flatnonzero(descends)
    if not len(entries):
        return entries, entries
    pairs = np.searchsorted(starts, entries, side="right") - 1
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    first = starts[pairs]
    sizes = np.append(starts, len(values))[pairs + 1] - first
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    begins = np.repeat(first, sizes)
    entries = begins + np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
    # Floats are ordered as their bits are, but that those of negative ones descend.
    bits = values[entries].astype(np.float64, copy=False).view(np.int64)
    bits = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    return entries, begins + order_within(bounds, bits)


def _order_ties(order: Integers, tied: Booleans, keys: Hashes) -> None:
    """Sort what stands next to each other in an order and is tied so far by whole keys, in place.

    `tied` says of each entry but the first whether it is tied with the one before it.
    """
    if not tied.any():
        return
    before = np.concatenate([[False], tied])
    places = np.flatnonzero(before | np.concatenate([tied, [False]]))
    entries = order[places]
    order[places] = entries[np.lexsort((keys[entries], np.cumsum(~before[places])))]


def gather(array: NDArray[Any], order: AnyArray) -> NDArray[Any]:
    """Return ``array[order]``, shared between threads; indices are in range."""
    result = np.empty(len(order), array.dtype)

    def take(first: int, last: int) -> None:
        # Without a check of the indices NumPy needs no buffer.
        np.take(array, order[first:last], out=result[first:last], mode="clip")

    for_blocks(take, len(order), block=_BLOCK)
    return result


def _bits(n: int) -> int:
    """Return how many bits the numbers below n take."""
    return int(n - 1).bit_length() if n else 0
