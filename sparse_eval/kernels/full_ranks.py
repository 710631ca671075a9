"""Ranks of held-out items in the whole catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact import count_above_in_line, count_above_item, score_exactly
from .jit import allocating_kernel
from .products import LANES, ROUNDING, ROWS_AT_ONCE, multiply, pack

if TYPE_CHECKING:
    from .jit import Array
    from .structures import Catalogue, HeldOut, Seen, Users


@allocating_kernel
def count_above(
    first: int,
    last: int,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    candidate: Array,
    chunk: int,
    held_out: HeldOut,
    counts: Array,
) -> None:
    """Count all unseen candidates above every held-out item of users, and those that tie with it.

    The users are sorted by their lowest held-out score, so that those of a block finish after about
    as many items. Seen items are counted too and subtracted last, because they are few.
    """
    n_items = len(catalogue.norms)
    n = last - first
    most = chunk
    for i in range(n):
        user = users.row[first + i]
        most = max(most, seen.indptr[user + 1] - seen.indptr[user])
    selected = np.empty(most, np.int32)
    exact = np.empty(most + 7)
    strips = np.empty((-(-chunk // LANES), catalogue.directions.shape[1], LANES), np.int32)
    weights = np.zeros(len(strips) * LANES, np.float32)
    products = np.empty((n + ROWS_AT_ONCE, len(weights)), np.float32)
    active = np.arange(first, last)
    for begin in range(0, n_items, chunk):
        kept = 0
        for a in range(n):
            row = users.result_row[active[a]]
            lowest = held_out.scores[held_out.indptr[row + 1] - 1] / users.scale[active[a]]
            if catalogue.norms[begin] + ROUNDING >= lowest:
                active[kept] = active[a]
                kept += 1
        n = kept
        if n == 0:
            break
        size = min(chunk, n_items - begin)
        items = catalogue.item_of[begin : begin + size]
        margins = catalogue.margins[begin : begin + size]
        pack(catalogue.directions, catalogue.order[begin : begin + size], size, strips)
        weights[:size] = catalogue.weights[begin : begin + size]
        rows = users.direction[active[:n]]
        for a in range(0, n, ROWS_AT_ONCE):
            for s in range(-(-size // LANES)):
                multiply(users.directions, rows, a, strips, s, weights, products)
        counts[0] += n * size
        for a in range(n):
            at = active[a]
            row = users.result_row[at]
            for h in range(held_out.indptr[row], held_out.indptr[row + 1]):
                held_out.above[h] += count_above_in_line(
                    products[a, :size], margins, items, h, users.row[at], users.scale[at],
                    users.factors, catalogue.factors, held_out, selected, exact,
                )  # fmt: skip
    for i in range(first, last):
        user = users.row[i]
        row = users.result_row[i]
        n_selected = 0
        for entry in range(seen.indptr[user], seen.indptr[user + 1]):
            if candidate[seen.items[entry]]:
                selected[n_selected] = seen.items[entry]
                n_selected += 1
        score_exactly(user, users.factors, catalogue.factors, selected, n_selected, exact)
        for h in range(held_out.indptr[row], held_out.indptr[row + 1]):
            held_out.above[h] -= count_above_item(n_selected, selected, exact, h, held_out, -1)
