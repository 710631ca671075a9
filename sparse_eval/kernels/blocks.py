"""Lists and ranks from blocks of scores: a row for each user, a column for each item.

Scores are float64. Items that are not candidates of a user have a score of minus infinity. Higher
scores come first; of equal scores, the lower id comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .candidates import COMPARED, add_up, place_candidate
from .exact import contains, cut, write_list, write_sorted
from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array
    from .structures import HeldOut, Lists, Seen, SortingRoom

#: The number of scores compared at once. They are compared one by one only if at least one passes.
COMPARED_AT_ONCE = 32

#: The number of columns of a dense matrix processed at once: their sums stay in the L1 cache.
COLUMNS_AT_ONCE = 2048


@kernel
def multiply_sparse(
    first: int,
    last: int,
    users: Array,
    history: Seen,
    weights: Array,
    indptr: Array,
    columns: Array,
    values: Array,
    scores: Array,
) -> None:
    """Write the scores of users: weighted sums of the sparse matrix's rows for their items.

    The sum of each score is accumulated in float64, in the order of the user's items.
    """
    for i in range(first, last):
        line = scores[i - first]
        for j in range(len(line)):
            line[j] = 0.0
        for entry in range(history.indptr[users[i]], history.indptr[users[i] + 1]):
            weight = weights[entry]
            item = history.items[entry]
            for e in range(indptr[item], indptr[item + 1]):
                line[columns[e]] += weight * np.float64(values[e])


@kernel
def multiply_dense(
    first: int,
    last: int,
    users: Array,
    history: Seen,
    weights: Array,
    matrix: Array,
    scores: Array,
) -> None:
    """Write the scores of users as `multiply_sparse` does, from a dense matrix."""
    n_items = matrix.shape[1]
    for i in range(first, last):
        start = history.indptr[users[i]]
        stop = history.indptr[users[i] + 1]
        for column in range(0, n_items, COLUMNS_AT_ONCE):
            end = min(column + COLUMNS_AT_ONCE, n_items)
            line = scores[i - first, column:end]
            for j in range(len(line)):
                line[j] = 0.0
            for entry in range(start, stop):
                weight = weights[entry]
                values = matrix[history.items[entry], column:end]
                for j in range(len(line)):
                    line[j] += weight * np.float64(values[j])


@kernel
def leave_out(
    first: int,
    last: int,
    users: Array,
    seen: Seen,
    excluded: Array,
    allowed: Seen,
    scores: Array,
    fault: Array,
) -> None:
    """Set the scores of items that are not candidates of users to minus infinity.

    Row 0 of `scores` belongs to user ``users[first]``. `excluded`, ascending, are items that no
    user has as candidates. `allowed` are the candidates of each user; if it has no rows, all items
    are candidates. Stop at a candidate whose score is not finite, and write (1, i, item) to
    `fault`.
    """
    for i in range(first, last):
        user = users[i]
        line = scores[i - first]
        seen_by_user = seen.items[seen.indptr[user] : seen.indptr[user + 1]]
        odd = np.int32(0)
        for j in range(len(line)):
            odd = np.int32(odd + np.int32(not (abs(line[j]) < np.inf)))
        for j in range(len(line) if odd > 0 else 0):
            if abs(line[j]) < np.inf or contains(excluded, j) or contains(seen_by_user, j):
                continue
            if len(allowed.indptr) > 1:
                own = allowed.items[allowed.indptr[user] : allowed.indptr[user + 1]]
                if not contains(own, j):
                    continue
            fault[0] = 1
            fault[1] = i
            fault[2] = j
            return
        for entry in range(len(excluded)):
            line[excluded[entry]] = -np.inf
        for entry in range(len(seen_by_user)):
            line[seen_by_user[entry]] = -np.inf
        if len(allowed.indptr) > 1:
            begin = 0
            for entry in range(allowed.indptr[user], allowed.indptr[user + 1]):
                for j in range(begin, allowed.items[entry]):
                    line[j] = -np.inf
                begin = allowed.items[entry] + 1
            for j in range(begin, len(line)):
                line[j] = -np.inf


@kernel
def list_best(
    first: int, last: int, k: int, scores: Array, lists: Lists, room: SortingRoom, out: Lists
) -> None:
    """Write the lists of result rows; row 0 of `scores` belongs to result row `first`.

    `lists` has room for one list while it grows.
    """
    capacity = lists.items.shape[1]
    for i in range(first, last):
        line = scores[i - first]
        lists.size[0] = 0
        lists.dropped[0] = -np.inf
        limit = -np.inf
        for lane in range(0, len(line), COMPARED_AT_ONCE):
            part = line[lane : min(lane + COMPARED_AT_ONCE, len(line))]
            best_out = lists.dropped[0]
            above = np.int32(0)
            for j in range(len(part)):
                above = np.int32(above + np.int32(part[j] > best_out))
            if above == 0:
                continue
            for j in range(len(part)):
                if part[j] > limit:
                    size = lists.size[0]
                    lists.scores[0, size] = part[j] + 0.0  # −0 becomes 0
                    lists.items[0, size] = lane + j
                    lists.size[0] = size + 1
                    if size + 1 == capacity:
                        cut(0, k, lists)
                        limit = lists.scores[0, k - 1]
                else:  # of equal scores, the lower id is better, and it came first
                    lists.dropped[0] = max(lists.dropped[0], part[j])
        write_list(0, i, k, lists, room, out)


@kernel
def rank_held_out(
    first: int, last: int, scores: Array, held_out: HeldOut, unsorted: Array, exact: Array
) -> None:
    """Sort the held-out items of rows, and count the candidates above each of them.

    Row 0 of `scores` belongs to row `first`. `unsorted` (int32) and `exact` (float64) have room for
    the longest row.
    """
    for i in range(first, last):
        line = scores[i - first]
        start = held_out.indptr[i]
        n = held_out.indptr[i + 1] - start
        for h in range(n):
            unsorted[h] = held_out.items[start + h]
            exact[h] = line[unsorted[h]]
        write_sorted(exact, unsorted, n, held_out.scores[start:], held_out.items[start:])
        held_out.alive[i] = n
        if n > COMPARED:
            for j in range(len(line)):
                place_candidate(line[j], j, start, start + n, held_out)
            add_up(start, start + n, held_out)
            continue
        for h in range(start, start + n):
            score = held_out.scores[h]
            above = np.int32(0)
            equal = np.int32(0)
            for j in range(len(line)):
                above = np.int32(above + np.int32(line[j] > score))
                equal = np.int32(equal + np.int32(line[j] == score))
            if equal > 1:
                for j in range(held_out.items[h]):
                    above = np.int32(above + np.int32(line[j] == score))
            held_out.above[h] = above
            held_out.tied[h] = equal - 1
