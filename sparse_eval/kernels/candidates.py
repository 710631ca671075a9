"""Lists and ranks among the listed candidates of each user, of which all are scored exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .counted_above import count_above_row
from .exact import score_exactly, select_best, write_sorted
from .jit import kernel, part
from .vectors import prefetch

if TYPE_CHECKING:
    from .jit import Array
    from .structures import HeldOut, Lists, Seen

#: The number of candidates that are sorted without a selection of the best before.
_SORTED_WHOLE = 32

#: Of so many candidates of the next user the factors are prefetched, at most.
_PREFETCHED = 512


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
    """Make the lists of rows; ``users[i]`` is the user of row i, and `unseen` has its candidates.

    `items` and `sorted_items`, of int32, and `sorted_scores` have room for the longest row, `exact`
    for seven more.
    """
    for row in range(first, last):
        start = unseen.indptr[users[row]]
        n = unseen.indptr[users[row] + 1] - start
        _fetch(users[min(row + 1, last - 1)], item_factors, unseen)
        for i in range(n):
            items[i] = unseen.items[start + i]
        score_exactly(users[row], user_factors, item_factors, items, n, exact)
        if n > max(_SORTED_WHOLE, k + 1):
            n = k + 1  # the last one is the best that is left out
            select_best(exact, items, unseen.indptr[users[row] + 1] - start, n)
        write_sorted(exact, items, n, sorted_scores, sorted_items)
        out.dropped[row] = sorted_scores[k] if n > k else -np.inf
        out.size[row] = min(n, k)
        for i in range(min(n, k)):
            out.items[row, i] = sorted_items[i]
            out.scores[row, i] = sorted_scores[i]


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
    """Count the candidates above each held-out item of rows, and those that tie with it."""
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
