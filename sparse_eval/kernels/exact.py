"""Exact scores of what a search has found, and what is kept of them: lists, or ranks.

An exact score is the dot product of the stored factors, accumulated in double precision in the
order of the factors. The better score comes first, and of equal ones the lower id.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .jit import inlined, kernel
from .prefetch import prefetch

if TYPE_CHECKING:
    from .jit import Array

#: Products compared at once; only where one of them passes are they looked at one by one.
_LANE = 32

#: So many rows ahead is fetched what will be read.
_AHEAD = 8

#: Numbers that are sorted by counting, at most.
_MANY = 256

#: So many numbers are looked through one by one.
_FEW = 64


class Seen(NamedTuple):
    """What users have seen: the items of a CSR matrix, ascending within a row."""

    indptr: Array
    items: Array


class Lists(NamedTuple):
    """Each row's best items so far: the first `size` of a row; `dropped` is the best that fell out.

    Either all of it belongs to the results, or to a block of users at work.
    """

    items: Array
    scores: Array
    size: Array
    dropped: Array


class HeldOut(NamedTuple):
    """Held-out items, each row's best first.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_rows + 1,)
        Where a row starts.
    items : ndarray of int32
        Rows of the item factors.
    scores : ndarray of float64
        Exact scores.
    above : ndarray of int32
        Unseen candidates that are better, as far as they have been counted.
    tied : ndarray of int32
        Unseen candidates of the same score, likewise.
    alive : ndarray of int64, shape (n_rows,)
        So many of a row may still be among the first k; the others need not be counted further.
    """

    indptr: Array
    items: Array
    scores: Array
    above: Array
    tied: Array
    alive: Array


@kernel
def measure_rows(first: int, last: int, factors: Array, norms: Array) -> None:
    """Write the lengths of some rows; NaN for a row that is not finite."""
    width = factors.shape[1]
    for row in range(first, last):
        total = 0.0
        odd = 0.0
        for f in range(0, width - 1, 2):  # two sums: one would wait for itself
            total += np.float64(factors[row, f]) * np.float64(factors[row, f])
            odd += np.float64(factors[row, f + 1]) * np.float64(factors[row, f + 1])
        if width % 2 == 1:
            total += np.float64(factors[row, width - 1]) * np.float64(factors[row, width - 1])
        total += odd
        if 1e-200 < total < 1e300:
            norms[row] = math.sqrt(total)
            continue
        # Squares may be out of the range of numbers though the length is not.
        largest = 0.0
        finite = True
        for f in range(width):
            value = abs(np.float64(factors[row, f]))
            if not value < np.inf:
                finite = False
            largest = max(largest, value)
        total = 0.0
        if largest > 0.0 and finite:
            for f in range(width):
                part = np.float64(factors[row, f]) / largest
                total += part * part
        norms[row] = largest * math.sqrt(total) if finite else np.nan


@inlined
def is_better(score: float, item: int, other_score: float, other_item: int) -> bool:
    """Say which of two items comes first."""
    return score > other_score or (score == other_score and item < other_item)


@inlined
def select_best(scores: Array, items: Array, n: int, k: int) -> None:
    """Bring the `k` best of the first `n` to the front, the k-th to place k - 1."""
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


@inlined
def write_sorted(
    scores: Array, items: Array, n: int, sorted_scores: Array, sorted_items: Array
) -> None:
    """Write the first `n`, the best first.

    The place of a score is how many are better. Nearly all lists are short, and counting is done by
    vector instructions: a sort, whose branches nobody can predict, took five times as long.
    """
    if n <= _MANY:
        for i in range(n):
            score = scores[i]
            item = items[i]
            place = 0
            for j in range(n):
                place += (scores[j] > score) | ((scores[j] == score) & (items[j] < item))
            sorted_scores[place] = score
            sorted_items[place] = item
        return
    by_item = np.argsort(items[:n])
    order = by_item[np.argsort(-scores[:n][by_item], kind="mergesort")]
    for i in range(n):
        sorted_scores[i] = scores[order[i]]
        sorted_items[i] = items[order[i]]


@inlined
def score_exactly(
    user: int, user_factors: Array, item_factors: Array, items: Array, n: int, out: Array
) -> None:
    """Write the exact scores of the first `n` items; `out` has room for seven more.

    Eight sums at a time: a sum alone waits for each of its additions, in an order that is part of
    the definition.
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
    first: int, last: int, rows: Array, user_factors: Array, item_factors: Array, held: HeldOut
) -> None:
    """Score the held-out items of some rows, ``rows[i]`` being the user's, and sort them."""
    longest = 0
    for place in range(first, last):
        longest = max(longest, held.indptr[place + 1] - held.indptr[place])
    exact = np.empty(longest + 7)
    unsorted = np.empty(longest, np.int32)
    width = item_factors.shape[1]
    for place in range(first, last):
        start = held.indptr[place]
        n = held.indptr[place + 1] - start
        ahead = min(place + _AHEAD // 4, last - 1)
        for h in range(held.indptr[ahead], held.indptr[ahead + 1]):
            prefetch(item_factors, held.items[h] * width, width)
        for h in range(n):
            unsorted[h] = held.items[start + h]
        score_exactly(rows[place], user_factors, item_factors, unsorted, n, exact)
        write_sorted(exact, unsorted, n, held.scores[start:], held.items[start:])


@inlined
def row_of(seen_items: Array, start: int, stop: int, item: int) -> int:
    """Return the first entry of a row of `seen_items` that is not below `item`."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if seen_items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def holds(items: Array, item: int) -> bool:
    """Say whether `items`, which ascend, hold `item`."""
    if len(items) <= _FEW:  # as quick as a step or two of a search, and nothing to predict
        equal = 0
        for e in range(len(items)):
            equal += items[e] == item
        return equal > 0
    at = row_of(items, 0, len(items), item)
    return at < len(items) and items[at] == item


@kernel
def find_seen(
    first: int, last: int, rows: Array, indptr: Array, items: Array, seen: Seen, found: Array
) -> None:
    """Mark the entries of some rows that the user, ``rows[i]``, has seen."""
    for place in range(first, last):
        start = seen.indptr[rows[place]]
        stop = seen.indptr[rows[place] + 1]
        ahead = rows[min(place + _AHEAD, last - 1)]
        prefetch(seen.items, seen.indptr[ahead], seen.indptr[ahead + 1] - seen.indptr[ahead])
        mine = seen.items[start:stop]
        for entry in range(indptr[place], indptr[place + 1]):
            found[entry] = holds(mine, items[entry])


@kernel
def count_hits(first: int, last: int, held: HeldOut, k: int, counts: Array) -> None:
    """Count the held-out items of some rows that are among the first `k`."""
    for place in range(first, last):
        start = held.indptr[place]
        n = 0
        while n < held.alive[place] and held.above[start + n] < k:  # the best first
            n += 1
        counts[place] = n


@kernel
def write_hits(
    first: int, last: int, held: HeldOut, indptr: Array, items: Array, ranks: Array, tied: Array
) -> None:
    """Write the items that `count_hits` found, their ranks and whether other items tie with them.

    Row i goes to ``indptr[i]`` and behind.
    """
    for place in range(first, last):
        start = held.indptr[place]
        for out in range(indptr[place], indptr[place + 1]):
            h = start + out - indptr[place]
            items[out] = held.items[h]
            ranks[out] = held.above[h] + 1
            tied[out] = held.tied[h] > 0


@inlined
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
    found: Array,
    exact: Array,
) -> float:
    """Put the first `n` found items into list `i`; return what a relative score must now reach."""
    score_exactly(user, user_factors, item_factors, found, n, exact)
    scores = lists.scores[i]
    items = lists.items[i]
    size = lists.size[i]
    # Not at every step: to select costs more than to look at what a higher limit would keep away.
    enough = k if limit == -np.inf else k + k // 8 + 4
    for e in range(n):
        scores[size] = exact[e]
        items[size] = found[e]
        size += 1
        if size == len(scores) or (e == n - 1 and size >= enough):
            lists.size[i] = size
            _cut(i, k, lists)
            size = lists.size[i]
            limit = scores[k - 1] / scale
    lists.size[i] = size
    return limit


@inlined
def _cut(i: int, k: int, lists: Lists) -> None:
    """Keep the `k` best of list `i`, and the best score of the others."""
    scores = lists.scores[i]
    size = lists.size[i]
    select_best(scores, lists.items[i], size, k)
    for j in range(k, size):
        lists.dropped[i] = max(lists.dropped[i], scores[j])
    lists.size[i] = min(size, k)


@inlined
def hand_over(i: int, place: int, k: int, lists: Lists, out: Lists) -> None:
    """Copy a list to the results, the best first."""
    if lists.size[i] > k:
        _cut(i, k, lists)
    size = lists.size[i]
    out.size[place] = size
    out.dropped[place] = lists.dropped[i]
    write_sorted(lists.scores[i], lists.items[i], size, out.scores[place], out.items[place])


@inlined
def rank(n: int, found: Array, exact: Array, h: int, held: HeldOut, sign: int) -> int:
    """Count those of the first `n` found items that are above a held-out one, and note its ties."""
    above = 0
    for e in range(n):
        if found[e] != held.items[h]:
            above += is_better(exact[e], found[e], held.scores[h], held.items[h])
            held.tied[h] += sign * (exact[e] == held.scores[h])
    return above


@inlined
def count_line(
    line: Array,
    margins: Array,
    items: Array,
    h: int,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    held: HeldOut,
    found: Array,
    exact: Array,
) -> int:
    """Count the items above a held-out one by their products, which are uncertain by `margins`."""
    score = np.float32(held.scores[h] / scale)
    higher = np.int32(0)
    near = np.int32(0)
    for j in range(len(line)):
        higher = np.int32(higher + np.int32(line[j] - margins[j] > score))
        near = np.int32(near + np.int32(line[j] + margins[j] >= score))
    above = int(higher)
    n = 0
    for lane in range(0, len(line) if near > higher else 0, _LANE):
        part = line[lane : min(lane + _LANE, len(line))]
        margin = margins[lane : min(lane + _LANE, len(line))]
        near = np.int32(0)
        for j in range(len(part)):
            near += (part[j] - margin[j] <= score) & (part[j] + margin[j] >= score)
        if near == 0:
            continue
        for j in range(len(part)):
            item = items[lane + j]
            if part[j] - margin[j] <= score <= part[j] + margin[j] and item != held.items[h]:
                found[n] = item
                n += 1
    if n > 0:
        score_exactly(user, user_factors, item_factors, found, n, exact)
        above += rank(n, found, exact, h, held, 1)
    return above


@inlined
def limit_of_ranks(place: int, alive: int, scale: float, held: HeldOut) -> float:
    """Return what a relative score must reach: the lowest held-out score that is alive."""
    held.alive[place] = alive
    if alive == 0:
        return np.inf
    limit: float = held.scores[held.indptr[place] + alive - 1] / scale
    return limit


@inlined
def extend_ranks(
    place: int,
    n: int,
    k: int,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    held: HeldOut,
    found: Array,
    exact: Array,
) -> float:
    """Count the first `n` found items; return what a relative score must now reach."""
    score_exactly(user, user_factors, item_factors, found, n, exact)
    start = held.indptr[place]
    alive = held.alive[place]
    for e in range(n):
        for h in range(start + alive - 1, start - 1, -1):
            if exact[e] < held.scores[h]:
                break
            if found[e] != held.items[h]:
                held.above[h] += is_better(exact[e], found[e], held.scores[h], held.items[h])
                held.tied[h] += exact[e] == held.scores[h]
    while alive > 0 and held.above[start + alive - 1] >= k:
        alive -= 1
    return limit_of_ranks(place, alive, scale, held)


@inlined
def find_unseen(row: int, candidates: Array, seen: Seen, most: int, unseen: Array) -> int:
    """Write at most `most` of the candidates that a user has not seen; return how many."""
    entry = seen.indptr[row]
    stop = seen.indptr[row + 1]
    n = 0
    for j in range(len(candidates)):
        if n == most:
            break
        while entry < stop and seen.items[entry] < candidates[j]:
            entry += 1
        if entry == stop or seen.items[entry] != candidates[j]:
            unseen[n] = candidates[j]
            n += 1
    return n


@kernel
def list_plainly(
    first: int,
    last: int,
    chosen: Array,
    rows: Array,
    cold: bool,
    user_factors: Array,
    item_factors: Array,
    candidates: Array,
    seen: Seen,
    k: int,
    out: Lists,
) -> None:
    """Make the lists of users whose scores are all 0 (`cold`) or too small to be selected from.

    `chosen` are rows of the results; `candidates` ascend.
    """
    n = len(candidates)
    unseen = np.empty(n, np.int32)
    exact = np.zeros(n + 7)
    items = np.empty(n, np.int32)
    scores = np.zeros(n + 1)
    for c in range(first, last):
        place = chosen[c]
        row = rows[place]
        # If all scores are equal, the lower ids come first.
        size = find_unseen(row, candidates, seen, min(k + 1, n) if cold else n, unseen)
        if not cold:
            score_exactly(row, user_factors, item_factors, unseen, size, exact)
            write_sorted(exact, unseen, size, scores, items)
        out.dropped[place] = scores[k] if size > k else -np.inf
        out.size[place] = min(size, k)
        for j in range(min(size, k)):
            out.items[place, j] = unseen[j] if cold else items[j]
            out.scores[place, j] = scores[j]


@kernel
def rank_plainly(
    first: int,
    last: int,
    chosen: Array,
    rows: Array,
    cold: bool,
    user_factors: Array,
    item_factors: Array,
    candidates: Array,
    seen: Seen,
    held: HeldOut,
) -> None:
    """Count what is above each held-out item, for users as in `list_plainly`."""
    n = len(candidates)
    unseen = np.empty(n, np.int32)
    exact = np.zeros(n + 7)
    for c in range(first, last):
        place = chosen[c]
        row = rows[place]
        size = find_unseen(row, candidates, seen, n, unseen)
        if not cold:
            score_exactly(row, user_factors, item_factors, unseen, size, exact)
        held.alive[place] = held.indptr[place + 1] - held.indptr[place]
        for h in range(held.indptr[place], held.indptr[place + 1]):
            if cold:
                held.above[h] = row_of(unseen, 0, size, held.items[h])
                held.tied[h] = size - 1
            else:
                held.above[h] = rank(size, unseen, exact, h, held, 1)
