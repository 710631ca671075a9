"""Checks of sparse rows, and sorting of lists by positions or scores.

A checking kernel checks the rows from `first` to `last` and writes (kind, row, entry) to `fault` if
it finds one. Kind 0 means no fault, and these kernels find only faults of kind 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .jit import allocating_kernel, kernel, part
from .sorting import sort_best_first, sort_falling

if TYPE_CHECKING:
    from .jit import Array


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
