"""Lists and ranks of users, computed from exact scores of all their candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact import score_exactly, select_best, write_sorted
from .jit import allocating_kernel, kernel, part
from .sorting import is_better
from .vectors import prefetch

if TYPE_CHECKING:
    from .jit import Array
    from .structures import HeldOut, Lists, Seen

#: The largest number of held-out items that candidates are compared with one by one. Among more
#: items, a binary search finds the place of a candidate. Each step of it waits for memory, but the
#: work stays in proportion to the input.
COMPARED = 256

#: An item id that sorts after all others.
_LAST = 2**31

#: The number of candidates up to which all are sorted, without selecting the best first.
_SORTED_WHOLE = 32

#: The largest number of the next user's candidates whose factors are prefetched.
_PREFETCHED = 512


@part
def count_above_row(n: int, items: Array, exact: Array, row: int, held_out: HeldOut) -> None:
    """Count which of the first `n` items are above each held-out item of a row, or tie with it.

    The held-out items are sorted, the best first, and their counts are zero.
    """
    count_some_above_row(n, items, exact, row, held_out)
    add_up_row(row, held_out)


@part
def count_some_above_row(n: int, items: Array, exact: Array, row: int, held_out: HeldOut) -> None:
    """Do the same as `count_above_row` for some items; after the last ones, call `add_up_row`."""
    start = held_out.indptr[row]
    stop = held_out.indptr[row + 1]
    if stop - start > COMPARED:
        for e in range(n):
            place_candidate(exact[e], items[e], start, stop, held_out)
        return
    for h in range(start, stop):
        above = 0
        for e in range(n):
            if items[e] != held_out.items[h]:
                above += is_better(exact[e], items[e], held_out.scores[h], held_out.items[h])
                held_out.tied[h] += exact[e] == held_out.scores[h]
        held_out.above[h] += above


@part
def add_up_row(row: int, held_out: HeldOut) -> None:
    """Sum the recorded differences of a row, if it has more than `COMPARED` held-out items."""
    start = held_out.indptr[row]
    stop = held_out.indptr[row + 1]
    if stop - start > COMPARED:
        add_up(start, stop, held_out)


@part
def place_candidate(score: float, item: int, start: int, stop: int, held_out: HeldOut) -> None:
    """Record which held-out items a candidate is above, and which it ties with.

    Until `add_up`, counts are differences from one held-out item to the next.
    """
    first = _first_below(score, -1, start, stop, held_out)
    place = first
    if first < stop and held_out.scores[first] == score:
        end = _first_below(score, _LAST, first, stop, held_out)
        held_out.tied[first] += 1
        if end < stop:
            held_out.tied[end] -= 1
        place = _first_below(score, item, first, end, held_out)
        if place > first and held_out.items[place - 1] == item:  # it does not tie with itself
            held_out.tied[place - 1] -= 1
            if place < stop:
                held_out.tied[place] += 1
    if place < stop:
        held_out.above[place] += 1


@part
def add_up(start: int, stop: int, held_out: HeldOut) -> None:
    """Sum the differences that `place_candidate` recorded for the candidates of a row."""
    for h in range(start + 1, stop):
        held_out.above[h] += held_out.above[h - 1]
        held_out.tied[h] += held_out.tied[h - 1]


@part
def _first_below(score: float, item: int, start: int, stop: int, held_out: HeldOut) -> int:
    """Return the index of the first held-out item that is worse than a candidate, or `stop`."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if is_better(score, item, held_out.scores[middle], held_out.items[middle]):
            high = middle
        else:
            low = middle + 1
    return low


@part
def _write_best(
    row: int,
    n: int,
    items: Array,
    exact: Array,
    k: int,
    out: Lists,
    sorted_items: Array,
    sorted_scores: Array,
) -> None:
    """Write the best of `n` items to the list of a row, and the best score not in the list."""
    n_sorted = n
    if n > max(_SORTED_WHOLE, k + 1):
        n_sorted = k + 1
        select_best(exact, items, n, n_sorted)
    write_sorted(exact, items, n_sorted, sorted_scores, sorted_items)
    out.dropped[row] = sorted_scores[k] if n_sorted > k else -np.inf
    out.size[row] = min(n, k)
    for i in range(min(n, k)):
        out.items[row, i] = sorted_items[i]
        out.scores[row, i] = sorted_scores[i]


@part
def _fetch(user: int, item_factors: Array, unseen: Seen) -> None:
    """Prefetch the factors of the first candidates of a user."""
    width = item_factors.shape[1]
    start = unseen.indptr[user]
    for entry in range(start, min(unseen.indptr[user + 1], start + _PREFETCHED)):
        prefetch(item_factors, unseen.items[entry] * width, width)


@kernel
def list_candidates(
    first: int,
    last: int,
    users: Array,
    user_factors: Array,
    item_factors: Array,
    unseen: Seen,
    k: int,
    out: Lists,
    items: Array,
    exact: Array,
    sorted_items: Array,
    sorted_scores: Array,
) -> None:
    """Write the lists of rows; ``users[i]`` is the user of row i, and `unseen` has the candidates.

    `items` and `sorted_items` (int32) and `sorted_scores` have room for the longest row, `exact`
    for seven more.
    """
    for row in range(first, last):
        start = unseen.indptr[users[row]]
        n = unseen.indptr[users[row] + 1] - start
        _fetch(users[min(row + 1, last - 1)], item_factors, unseen)
        for i in range(n):
            items[i] = unseen.items[start + i]
        score_exactly(users[row], user_factors, item_factors, items, n, exact)
        _write_best(row, n, items, exact, k, out, sorted_items, sorted_scores)


@kernel
def rank_candidates(
    first: int,
    last: int,
    users: Array,
    user_factors: Array,
    item_factors: Array,
    unseen: Seen,
    held_out: HeldOut,
    items: Array,
    exact: Array,
) -> None:
    """Count the candidates that are above each held-out item of rows, or tie with it."""
    for row in range(first, last):
        begin = held_out.indptr[row]
        stop = held_out.indptr[row + 1]
        held_out.alive[row] = stop - begin
        if begin == stop:
            continue
        _fetch(users[min(row + 1, last - 1)], item_factors, unseen)
        start = unseen.indptr[users[row]]
        n = unseen.indptr[users[row] + 1] - start
        for i in range(n):
            items[i] = unseen.items[start + i]
        score_exactly(users[row], user_factors, item_factors, items, n, exact)
        count_above_row(n, items, exact, row, held_out)


@part
def unseen_candidates(row: int, candidates: Array, seen: Seen, most: int, unseen: Array) -> int:
    """Write at most `most` candidates that a user has not seen; return their number."""
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


@allocating_kernel
def list_exhaustively(
    first: int,
    last: int,
    chosen: Array,
    users: Array,
    cold: bool,
    user_factors: Array,
    item_factors: Array,
    candidates: Array,
    seen: Seen,
    k: int,
    out: Lists,
) -> None:
    """Write the lists of users whose scores are all 0 (`cold`) or too small for selection.

    `chosen` are the result rows of the users ``users[chosen]``; `candidates` ascend.
    """
    n = len(candidates)
    unseen = np.empty(n, np.int32)
    exact = np.zeros(n + 7)
    items = np.empty(n, np.int32)
    scores = np.zeros(n + 1)
    for c in range(first, last):
        row = chosen[c]
        user = users[row]
        # All scores are equal for cold users, so the lower ids come first.
        size = unseen_candidates(user, candidates, seen, min(k + 1, n) if cold else n, unseen)
        if not cold:
            score_exactly(user, user_factors, item_factors, unseen, size, exact)
        _write_best(row, size, unseen, exact, k, out, items, scores)


@part
def _lower_bound(items: Array, n: int, item: int) -> int:
    """Return the index of the first of `n` ascending items that is not below `item`."""
    low = 0
    high = n
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@allocating_kernel
def rank_exhaustively(
    first: int,
    last: int,
    chosen: Array,
    users: Array,
    cold: bool,
    user_factors: Array,
    item_factors: Array,
    candidates: Array,
    seen: Seen,
    held_out: HeldOut,
    are_last: bool,
) -> None:
    """Count the candidates above each held-out item, for users as in `list_exhaustively`.

    Also for users with very many held-out items, because a search would compare each of them with
    all candidates. Unless users are cold, candidates can be passed in several calls; `are_last` is
    true in the last one.
    """
    n = len(candidates)
    unseen = np.empty(n, np.int32)
    exact = np.zeros(n + 7)
    for c in range(first, last):
        row = chosen[c]
        user = users[row]
        size = unseen_candidates(user, candidates, seen, n, unseen)
        if not cold:
            score_exactly(user, user_factors, item_factors, unseen, size, exact)
        held_out.alive[row] = held_out.indptr[row + 1] - held_out.indptr[row]
        if cold:
            for h in range(held_out.indptr[row], held_out.indptr[row + 1]):
                held_out.above[h] = _lower_bound(unseen, size, held_out.items[h])
                held_out.tied[h] = size - 1
        else:
            count_some_above_row(size, unseen, exact, row, held_out)
            if are_last:
                add_up_row(row, held_out)
