"""Checks on sparse rows, and building lists in the order of their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .jit import inlined, kernel

if TYPE_CHECKING:
    from .jit import Array


@kernel
def check_rows(
    first: int, last: int, indptr: Array, indices: Array, n_columns: int, fault: Array
) -> None:
    """Look for rows of a CSR that are out of order.

    Writes (kind, row, entry) of the first fault of the worst kind to `fault`: kind 1 is a row
    that is unsorted or holds a column twice, 2 an entry outside of the columns, 3 a row whose
    bounds lie outside of the data or cross.
    """
    for row in range(first, last):
        if indptr[row] < 0 or indptr[row + 1] < indptr[row] or indptr[row + 1] > len(indices):
            fault[0] = 3
            fault[1] = row
            return
    # Counts over the whole block, which the compiler turns into vector instructions: three times
    # as fast as looking at each entry, and most matrices have nothing to find.
    begin = indptr[first]
    columns = indices[begin : indptr[last]]
    outside = 0
    for i in range(len(columns)):
        outside += (columns[i] < 0) | (columns[i] >= n_columns)
    descents = 0
    for i in range(len(columns) - 1):
        descents += columns[i + 1] <= columns[i]
    for row in range(first, last):  # from one row to the next it may go down
        start = indptr[row] - begin
        if start > 0 and indptr[row] < indptr[row + 1]:
            descents -= columns[start] <= columns[start - 1]
    if outside == 0 and descents == 0:
        return
    for row in range(first, last):
        for entry in range(indptr[row], indptr[row + 1]):
            if indices[entry] < 0 or indices[entry] >= n_columns:
                fault[0] = 2
                fault[1] = row
                fault[2] = entry
                return
            unordered = entry > indptr[row] and indices[entry] <= indices[entry - 1]
            if unordered and fault[0] == 0:
                fault[0] = 1
                fault[1] = row
                fault[2] = entry


@inlined
def first_repeat(ids: Array) -> int:
    """Index of the first id that stands before it too, or -1; -1 may stand anywhere."""
    if len(ids) > 64:  # comparing all pairs would be quadratic
        ordered = np.sort(ids)
        repeated = False
        for i in range(1, len(ordered)):
            if ordered[i] == ordered[i - 1] and ordered[i] != -1:
                repeated = True
        if not repeated:
            return -1
    # A bit for the lowest and one for the next six bits of each id: where one of them is new, so
    # is the id.
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
def find_repeat(first: int, last: int, ids: Array, fault: Array) -> None:
    """Look for an id that stands in its list twice, -1 being padding.

    On a fault, writes (1, list, column) to `fault` and stops.
    """
    for i in range(first, last):
        repeat = first_repeat(ids[i])
        if repeat >= 0:
            fault[0] = 1
            fault[1] = i
            fault[2] = repeat
            return


@kernel
def find_repeat_in_rows(first: int, last: int, indptr: Array, ids: Array, fault: Array) -> None:
    """Do what `find_repeat` does, for the rows of a CSR."""
    for i in range(first, last):
        repeat = first_repeat(ids[indptr[i] : indptr[i + 1]])
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
    """Copy the rows of a position matrix in the order of their positions.

    On a fault, writes (kind, row, item) to `fault` and stops; kind 1 is a position that stands in
    its row twice.
    """
    for row in range(first, last):
        start = indptr[row]
        stop = indptr[row + 1]
        if stop - start <= 32:
            for source in range(start, stop):
                position = data[source]
                column = columns[source]
                target = source
                while target > start and positions[target - 1] > position:
                    positions[target] = positions[target - 1]
                    items[target] = items[target - 1]
                    target -= 1
                positions[target] = position
                items[target] = column
        else:
            order = np.argsort(data[start:stop])
            for i in range(stop - start):
                positions[start + i] = data[start + order[i]]
                items[start + i] = columns[start + order[i]]
        for entry in range(start + 1, stop):
            if positions[entry] == positions[entry - 1]:
                fault[0] = 1
                fault[1] = row
                fault[2] = entry
                return


@kernel
def rank_scores(
    candidates: Array,
    scores: Array,
    n: int,
    k: int,
    average_ties: bool,
    out_items: Array,
    out_first: Array,
    out_last: Array,
) -> int:
    """Rank the first `n` candidates by score downward, and equal scores as they are given.

    Writes at most k items with the first and last position that each may take, and returns their
    number; with `average_ties` the group of equal scores that crosses k is kept whole, so more
    than k items may come back.
    """
    if n == 0:
        return 0
    threshold = scores[0]
    if n > k:
        threshold = np.partition(scores[:n], n - k)[n - k]
    else:
        for i in range(n):
            threshold = min(threshold, scores[i])
    above = 0
    for i in range(n):
        if scores[i] > threshold:
            above += 1
    room = n if average_ties else min(k, n) - above
    chosen = np.empty(n, np.int64)
    negated = np.empty(n, np.float64)
    size = 0
    for i in range(n):
        if scores[i] > threshold:
            keep = True
        elif scores[i] == threshold and room > 0:
            keep = True
            room -= 1
        else:
            keep = False
        if keep:
            chosen[size] = i
            negated[size] = -scores[i]
            size += 1
    # A stable sort leaves the candidate that was given first before others of its score.
    order = np.argsort(negated[:size], kind="mergesort")
    start = 0
    while start < size:
        stop = start + 1
        if average_ties:
            while stop < size and negated[order[stop]] == negated[order[start]]:
                stop += 1
        for rank in range(start, stop):
            out_items[rank] = candidates[chosen[order[rank]]]
            out_first[rank] = start + 1
            out_last[rank] = stop
        start = stop
    return size


@kernel
def keep_unseen(
    ids: Array,
    scores: Array,
    users: Array,
    seen_indptr: Array,
    seen_items: Array,
    n_items: int,
    n_asked: int,
    blocked: float,
    lists: Array,
    complete: Array,
) -> None:
    """Write to `lists` the first k items that a model really recommends, in the model's order.

    A model pads a list that it cannot fill, with ids outside of the catalogue or with items whose
    score is `blocked` or lower, and it may return items that the user has seen. ``complete[i]``
    says whether asking for more than `n_asked` would change nothing: k items were found, or the
    model has no more.
    """
    k = lists.shape[1]
    for i in range(ids.shape[0]):
        start = seen_indptr[users[i]]
        stop = seen_indptr[users[i] + 1]
        complete[i] = n_asked >= n_items or ids.shape[1] < n_asked
        found = 0
        for column in range(ids.shape[1]):
            item = ids[i, column]
            if item < 0 or item >= n_items or scores[i, column] <= blocked:
                complete[i] = True
                continue
            place = start + np.searchsorted(seen_items[start:stop], item)
            if place < stop and seen_items[place] == item:
                continue
            if found < k:
                lists[i, found] = item
                found += 1
        if found == k:
            complete[i] = True
        lists[i, found:] = -1
