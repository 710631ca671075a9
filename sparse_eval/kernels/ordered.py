"""Exact search through the items by descending norm: a blocked product that ends early.

Users are processed in tiles, and items in chunks that fit into the cache together. A user is done
when none of the remaining norms reaches the limit. If many norms are similar, this is the whole
product. That is the fastest method if the catalogue is small or a user needs a large part of it. If
norms differ a lot, as in over-regularized models, a few hundred items are enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact import write_list
from .jit import kernel
from .lines import extend_by_line
from .products import ROUNDING, ROWS_AT_ONCE, multiply
from .vectors import LANES

if TYPE_CHECKING:
    from .jit import Array
    from .structures import Catalogue, HeldOut, Lists, OrderSpace, Packed, Seen, Task, Users


@kernel
def search_in_order(
    first: int,
    last: int,
    chosen: Array,
    users: Users,
    catalogue: Catalogue,
    packed: Packed,
    seen: Seen,
    task: Task,
    held_out: HeldOut | None,
    out: Lists | None,
    limits: Array,
    space: OrderSpace,
    lists: Lists | None,
    counts: Array,
) -> None:
    """Search for the users ``chosen[first:last]``, tile by tile.

    ``limits[i]`` is the relative score that items of user i must reach, minus infinity if none is
    known; it becomes infinity. Lists and counts start from the beginning, and only held-out items
    that are alive are counted. The number of products computed is added to ``counts[0]``. `lists`
    has room for the lists of a tile while they grow, and `out` for the results. Both are None if
    items are counted; otherwise `held_out` is None.
    """
    n_items = len(catalogue.norms)
    for tile in range(first, last, task.tile):
        n_of_tile = min(task.tile, last - tile)
        for a in range(n_of_tile):
            at = chosen[tile + a]
            space.at[a] = at
            space.slot[a] = a
            if held_out is not None:
                row = users.result_row[at]
                for h in range(held_out.indptr[row], held_out.indptr[row] + held_out.alive[row]):
                    held_out.above[h] = 0
                    held_out.tied[h] = 0
            if lists is not None:
                lists.size[a] = 0
                lists.dropped[a] = -np.inf
        n = n_of_tile
        begin = 0
        size = task.batch
        while begin < n_items:
            kept = 0
            for a in range(n):
                at = space.at[a]
                if catalogue.norms[begin] + ROUNDING >= limits[at]:
                    space.at[kept] = at
                    space.slot[kept] = space.slot[a]
                    space.rows[kept] = users.direction[at]
                    kept += 1
            n = kept
            if n == 0:
                break
            size = min(size, n_items - begin)
            strip = begin // LANES
            n_strips = -(-size // LANES)
            strips = packed.strips[strip : strip + n_strips]
            weights = packed.weights[begin : begin + n_strips * LANES]
            rows = space.rows[:n]
            for s in range(n_strips):  # a strip stays in the L1 cache for all users
                for a in range(0, n, ROWS_AT_ONCE):
                    multiply(users.directions, rows, a, strips, s, weights, space.products)
            counts[0] += n * size
            items = catalogue.item_of[begin : begin + size]
            for a in range(n):
                at = space.at[a]
                user = users.row[at]
                line = space.products[a, :size]
                for entry in range(seen.indptr[user], seen.indptr[user + 1]):
                    index = packed.index_of[seen.items[entry]] - begin
                    if 0 <= index < size:
                        line[index] = -np.inf
                extend_by_line(
                    at, space.slot[a], line, items, catalogue.margins[begin], space.maxima, users,
                    catalogue.factors, task, held_out, limits, lists, space.selected, space.exact,
                    begin + size == n_items,
                )  # fmt: skip
            begin += size
            size = min(2 * size, task.chunk)
        for a in range(n_of_tile):
            at = chosen[tile + a]
            limits[at] = np.inf
            if lists is not None and out is not None:
                write_list(a, users.result_row[at], task.k, lists, space.room, out)
