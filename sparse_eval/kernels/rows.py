"""Checks of sparse rows, and sorting of lists by positions or scores.

A checking kernel checks the rows from `first` to `last` and writes (kind, row, entry) to `fault` if
it finds one. Kind 0 means no fault. If a kernel detects only one kind of fault, it is kind 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .jit import allocating_kernel, kernel, part
from .sorting import sort_best_first, sort_falling

if TYPE_CHECKING:
    from .jit import Array

#: The kinds of faults that `check_rows` distinguishes. A row is not sorted or contains a column
#: twice; a column is out of range; row bounds cross or lie outside the data.
UNSORTED, OUT_OF_RANGE, BAD_BOUNDS = 1, 2, 3


@kernel
def check_rows(
    first: int, last: int, indptr: Array, indices: Array, n_columns: int, fault: Array
) -> None:
    """Find the first fault of the highest kind in the rows of a CSR."""
    for row in range(first, last):
        if indptr[row] < 0 or indptr[row + 1] < indptr[row] or indptr[row + 1] > len(indices):
            fault[0] = BAD_BOUNDS
            fault[1] = row
            return
    # The compiler vectorizes these counts over the whole block. They are three times as fast as
    # checking entry by entry, and most matrices have no fault.
    begin = indptr[first]
    columns = indices[begin : indptr[last]]
    outside = 0
    for i in range(len(columns)):
        outside += (columns[i] < 0) | (columns[i] >= n_columns)
    descents = 0
    for i in range(len(columns) - 1):
        descents += columns[i + 1] <= columns[i]
    for row in range(first, last):  # descents between rows are allowed
        start = indptr[row] - begin
        if start > 0 and indptr[row] < indptr[row + 1]:
            descents -= columns[start] <= columns[start - 1]
    if outside == 0 and descents == 0:
        return
    for row in range(first, last):
        for entry in range(indptr[row], indptr[row + 1]):
            if indices[entry] < 0 or indices[entry] >= n_columns:
                fault[0] = OUT_OF_RANGE
                fault[1] = row
                fault[2] = entry
                return
            unordered = entry > indptr[row] and indices[entry] <= indices[entry - 1]
            if unordered and fault[0] == 0:
                fault[0] = UNSORTED
                fault[1] = row
                fault[2] = entry


@part
def first_repeat(ids: Array, scratch: Array) -> int:
    """Return the index of the first repetition of an id, or -1; the id -1 may be repeated."""
    if len(ids) > 64:  # comparing all pairs would be quadratic
        for i in range(len(ids)):
            scratch[i] = ids[i]
        sort_falling(scratch, len(ids))
        repeated = False
        for i in range(1, len(ids)):
            if scratch[i] == scratch[i - 1] and scratch[i] != -1:
                repeated = True
        if not repeated:
            return -1
    # Two words with a bit for the lowest and for the next six bits of each id. An id is new if one
    # of its bits is not set yet.
    low_bits = np.uint64(0)
    high_bits = np.uint64(0)
    for i in range(len(ids)):
        low = np.uint64(1) << np.uint64(ids[i] & 63)
        high = np.uint64(1) << np.uint64((ids[i] >> 6) & 63)
        if low_bits & low and high_bits & high and ids[i] != -1:
            for j in range(i):
                if ids[i] == ids[j]:
                    return i
        low_bits |= low
        high_bits |= high
    return -1


@kernel
def find_repeat(
    first: int, last: int, indptr: Array, ids: Array, scratch: Array, fault: Array
) -> None:
    """Find an id that occurs twice in its row of a CSR; `scratch` has room for a row."""
    for i in range(first, last):
        repeat = first_repeat(ids[indptr[i] : indptr[i + 1]], scratch)
        if repeat >= 0:
            fault[0] = 1
            fault[1] = i
            fault[2] = indptr[i] + repeat
            return


@kernel
def order_by_position(
    first: int,
    last: int,
    indptr: Array,
    columns: Array,
    data: Array,
    items: Array,
    positions: Array,
    fault: Array,
) -> None:
    """Copy the rows of a position matrix, sorted by position.

    A position that occurs twice in its row is a fault.
    """
    for row in range(first, last):
        start = indptr[row]
        stop = indptr[row + 1]
        # Nearly all positions are 1, 2, 3, … without a gap, and can be used as indices.
        for entry in range(start, stop):
            positions[entry] = 0
        n_placed = 0
        for entry in range(start, stop):
            target = start + data[entry] - 1
            if target < start or target >= stop or positions[target] != 0:
                break
            positions[target] = data[entry]
            items[target] = columns[entry]
            n_placed += 1
        if n_placed < stop - start:
            for entry in range(start, stop):
                positions[entry] = -data[entry]
                items[entry] = columns[entry]
            sort_best_first(positions[start:stop], items[start:stop], stop - start)
            for entry in range(start, stop):
                positions[entry] = -positions[entry]
        for entry in range(start + 1, stop):
            if positions[entry] == positions[entry - 1]:
                fault[0] = 1
                fault[1] = row
                fault[2] = entry
                return


@allocating_kernel
def rank_keys(first: int, last: int, bounds: Array, keys: Array, positions: Array) -> None:
    """Write the position of each entry in its row after sorting the row by keys."""
    for row in range(first, last):
        start = bounds[row]
        order = np.argsort(keys[start : bounds[row + 1]], kind="mergesort")  # stable
        for position in range(len(order)):
            positions[start + order[position]] = position
