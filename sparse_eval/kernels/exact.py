"""Exact scores of selected items, and the lists and ranks computed from them.

An exact score is the dot product of the stored factors, accumulated in double precision in the
order of the factors. Higher scores come first; of equal scores, the lower id comes first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .jit import kernel, part
from .sorting import is_better, sort_best_first
from .vectors import DISTANCE, prefetch

if TYPE_CHECKING:
    from .jit import Array
    from .structures import HeldOut, Lists, Seen, SortingRoom

#: The length up to which numbers are sorted by counting.
_COUNTING_SORT = 256

#: The length up to which lists are first cut and then sorted by counting.
_DISTRIBUTED = 32

#: The length up to which arrays are searched linearly.
_LINEAR_SEARCH = 64


@kernel
def measure_rows(first: int, last: int, factors: Array, norms: Array) -> None:
    """Write the norms of rows; NaN for a row that is not finite."""
    width = factors.shape[1]
    for row in range(first, last):
        total = 0.0
        odd = 0.0
        for f in range(0, width - 1, 2):  # two sums: each addition waits for the previous one
            total += np.float64(factors[row, f]) * np.float64(factors[row, f])
            odd += np.float64(factors[row, f + 1]) * np.float64(factors[row, f + 1])
        if width % 2 == 1:
            total += np.float64(factors[row, width - 1]) * np.float64(factors[row, width - 1])
        total += odd
        if 1e-200 < total < 1e300:
            norms[row] = math.sqrt(total)
            continue
        # The squares may overflow or underflow even if the norm does not.
        largest = 0.0
        finite = True
        for f in range(width):
            value = abs(np.float64(factors[row, f]))
            if not value < np.inf:
                finite = False
            largest = value if value > largest else largest
        total = 0.0
        if largest > 0.0 and finite:
            for f in range(width):
                part = np.float64(factors[row, f]) / largest
                total += part * part
        norms[row] = largest * math.sqrt(total) if finite else np.nan


@part
def select_best(scores: Array, items: Array, n: int, k: int) -> None:
    """Move the `k` best of the first `n` items to the front, the k-th to index k - 1."""
    low = 0
    high = n - 1
    while low < high:
        middle = (low + high) >> 1
        score = scores[middle]
        item = items[middle]
        i = low
        j = high
        while i <= j:
            while is_better(scores[i], items[i], score, item):
                i += 1
            while is_better(score, item, scores[j], items[j]):
                j -= 1
            if i <= j:
                scores[i], scores[j] = scores[j], scores[i]
                items[i], items[j] = items[j], items[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@part
def write_sorted(
    scores: Array, items: Array, n: int, sorted_scores: Array, sorted_items: Array
) -> None:
    """Write the first `n` items sorted, the best first.

    The position of a score is the number of better scores. Nearly all lists are short, and counting
    is vectorized. A sort has unpredictable branches and took five times as long.
    """
    if n <= _COUNTING_SORT:
        for i in range(n):
            score = scores[i]
            item = items[i]
            position = 0
            for j in range(n):
                position += (scores[j] > score) | ((scores[j] == score) & (items[j] < item))
            sorted_scores[position] = score
            sorted_items[position] = item
        return
    for i in range(n):
        sorted_scores[i] = scores[i]
        sorted_items[i] = items[i]
    sort_best_first(sorted_scores, sorted_items, n)


@part
def _distribute(scores: Array, items: Array, n: int, room: SortingRoom) -> None:
    """Copy the first `n` items to `room`, nearly sorted: in order of equal steps of their scores.

    Sorting them then only compares neighbours, which takes a fifth of the time for 500 items.
    """
    high = scores[0]
    low = scores[0]
    for i in range(n):
        high = max(high, scores[i])
        low = min(low, scores[i])
    counts = room.counts
    last = len(counts) - 1
    step = (0.5 * high - 0.5 * low) / last  # halves, whose difference is finite
    is_spread = step > 1e-300
    for b in range(len(counts)):
        counts[b] = 0
    for i in range(n):
        counts[int((0.5 * high - 0.5 * scores[i]) / step) if is_spread else 0] += 1
    total = 0
    for b in range(len(counts)):
        total += counts[b]
        counts[b] = total - counts[b]
    for i in range(n):
        b = int((0.5 * high - 0.5 * scores[i]) / step) if is_spread else 0
        room.scores[counts[b]] = scores[i]
        room.items[counts[b]] = items[i]
        counts[b] += 1


@part
def score_exactly(
    user: int, user_factors: Array, item_factors: Array, items: Array, n: int, out: Array
) -> None:
    """Write the exact scores of the first `n` items; `out` has room for seven more.

    Eight sums are computed side by side. The order of the additions is part of the definition, so
    each addition of a sum waits for the previous one.
    """
    for i in range(0, n, 8):
        i0 = items[i]
        i1 = items[min(i + 1, n - 1)]
        i2 = items[min(i + 2, n - 1)]
        i3 = items[min(i + 3, n - 1)]
        i4 = items[min(i + 4, n - 1)]
        i5 = items[min(i + 5, n - 1)]
        i6 = items[min(i + 6, n - 1)]
        i7 = items[min(i + 7, n - 1)]
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        s4 = 0.0
        s5 = 0.0
        s6 = 0.0
        s7 = 0.0
        for f in range(user_factors.shape[1]):
            u = np.float64(user_factors[user, f])
            s0 += u * np.float64(item_factors[i0, f])
            s1 += u * np.float64(item_factors[i1, f])
            s2 += u * np.float64(item_factors[i2, f])
            s3 += u * np.float64(item_factors[i3, f])
            s4 += u * np.float64(item_factors[i4, f])
            s5 += u * np.float64(item_factors[i5, f])
            s6 += u * np.float64(item_factors[i6, f])
            s7 += u * np.float64(item_factors[i7, f])
        out[i] = s0
        out[i + 1] = s1
        out[i + 2] = s2
        out[i + 3] = s3
        out[i + 4] = s4
        out[i + 5] = s5
        out[i + 6] = s6
        out[i + 7] = s7


@kernel
def score_held_out(
    first: int,
    last: int,
    users: Array,
    user_factors: Array,
    item_factors: Array,
    held_out: HeldOut,
    unsorted: Array,
    exact: Array,
) -> None:
    """Score and sort the held-out items of rows; ``users[i]`` is the user of row i.

    `unsorted` (int32) has room for the longest row, and `exact` (float64) for seven more.
    """
    width = item_factors.shape[1]
    for row in range(first, last):
        start = held_out.indptr[row]
        n = held_out.indptr[row + 1] - start
        ahead = min(row + DISTANCE // 4, last - 1)
        for h in range(held_out.indptr[ahead], held_out.indptr[ahead + 1]):
            prefetch(item_factors, held_out.items[h] * width, width)
        for h in range(n):
            unsorted[h] = held_out.items[start + h]
        score_exactly(users[row], user_factors, item_factors, unsorted, n, exact)
        write_sorted(exact, unsorted, n, held_out.scores[start:], held_out.items[start:])


@part
def contains(items: Array, item: int) -> bool:
    """Return whether the ascending `items` contain `item`.

    After a binary search down to `_LINEAR_SEARCH` items, these are compared at once, which takes
    the time of a step or two.
    """
    first = 0
    size = len(items)
    while size > _LINEAR_SEARCH:
        half = size >> 1
        if items[first + half] <= item:
            first += half
        size -= half
    equal = 0
    for e in range(np.uint64(first), np.uint64(first + size)):  # unsigned, so it is vectorized
        equal += items[e] == item
    return equal > 0


@kernel
def find_seen(
    first: int, last: int, users: Array, indptr: Array, items: Array, seen: Seen, was_seen: Array
) -> None:
    """Mark the entries of rows that their users have seen; row i belongs to ``users[i]``."""
    for row in range(first, last):
        start = seen.indptr[users[row]]
        stop = seen.indptr[users[row] + 1]
        ahead = users[min(row + DISTANCE, last - 1)]
        prefetch(seen.items, seen.indptr[ahead], seen.indptr[ahead + 1] - seen.indptr[ahead])
        seen_by_user = seen.items[start:stop]
        for entry in range(indptr[row], indptr[row + 1]):
            was_seen[entry] = contains(seen_by_user, items[entry])


@part
def extend_list(
    i: int,
    n: int,
    limit: float,
    k: int,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    lists: Lists,
    selected: Array,
    exact: Array,
    is_last: bool,
) -> float:
    """Add the first `n` selected items to list `i`; return the relative score to reach next.

    If the items are the last ones (`is_last`), this score is not updated.
    """
    score_exactly(user, user_factors, item_factors, selected, n, exact)
    scores = lists.scores[i]
    items = lists.items[i]
    size = lists.size[i]
    # The list is not cut at every step: cutting costs more than scoring the items that a higher
    # limit would exclude.
    enough = k if limit == -np.inf else k + k // 8 + 4
    for e in range(n):
        scores[size] = exact[e]
        items[size] = selected[e]
        size += 1
        if size == len(scores) or (e == n - 1 and size >= enough and not is_last):
            lists.size[i] = size
            cut(i, k, lists)
            size = lists.size[i]
            limit = scores[k - 1] / scale
    lists.size[i] = size
    return limit


@part
def cut(i: int, k: int, lists: Lists) -> None:
    """Keep the `k` best items of list `i`, and record the best score of the others."""
    scores = lists.scores[i]
    size = lists.size[i]
    select_best(scores, lists.items[i], size, k)
    for j in range(k, size):
        lists.dropped[i] = max(lists.dropped[i], scores[j])
    lists.size[i] = min(size, k)


@part
def write_list(i: int, row: int, k: int, lists: Lists, room: SortingRoom, out: Lists) -> None:
    """Copy list `i` to the results, the best item first."""
    if k > _DISTRIBUTED:
        size = lists.size[i]
        _distribute(lists.scores[i], lists.items[i], size, room)
        sort_best_first(room.scores, room.items, size)
        if size > k:
            lists.dropped[i] = max(lists.dropped[i], room.scores[k])
        for j in range(min(size, k)):
            out.scores[row, j] = room.scores[j]
            out.items[row, j] = room.items[j]
    else:
        if lists.size[i] > k:
            cut(i, k, lists)
        size = lists.size[i]
        write_sorted(lists.scores[i], lists.items[i], size, out.scores[row], out.items[row])
    out.size[row] = min(size, k)
    out.dropped[row] = lists.dropped[i]


@part
def limit_of_ranks(row: int, alive: int, scale: float, held_out: HeldOut) -> float:
    """Return the relative score to reach: the score of the lowest held-out item that is alive."""
    held_out.alive[row] = alive
    if alive == 0:
        return np.inf
    limit: float = held_out.scores[held_out.indptr[row] + alive - 1] / scale
    return limit


@part
def extend_ranks(
    row: int,
    n: int,
    k: int,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    held_out: HeldOut,
    selected: Array,
    exact: Array,
) -> float:
    """Count the first `n` selected items; return the relative score to reach next."""
    score_exactly(user, user_factors, item_factors, selected, n, exact)
    start = held_out.indptr[row]
    alive = held_out.alive[row]
    for e in range(n):
        for h in range(start + alive - 1, start - 1, -1):
            if exact[e] < held_out.scores[h]:
                break
            if selected[e] != held_out.items[h]:
                held_out.above[h] += is_better(
                    exact[e], selected[e], held_out.scores[h], held_out.items[h]
                )
                held_out.tied[h] += exact[e] == held_out.scores[h]
    while alive > 0 and held_out.above[start + alive - 1] >= k:
        alive -= 1
    return limit_of_ranks(row, alive, scale, held_out)
